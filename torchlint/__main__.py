"""``python -m torchlint``."""

import os
import sys

if __name__ == "__main__":
    # Python looks for modules in the current folder first, which may be the one to lint: nothing of it is to be run.
    sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]

    from torchlint.cli import main

    main()
