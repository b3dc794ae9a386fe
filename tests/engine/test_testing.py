"""Files that are tests by their content."""

from __future__ import annotations

import pytest

from torchlint.engine.testing import holds_tests

PYTEST = "import pytest\n\n\ndef test_it():\n    pass\n"
CASE = "import unittest\n\n\nclass ItTest(unittest.TestCase):\n    def test_it(self):\n        pass\n"
HELPER = "\n\ndef make():\n    pass\n"


@pytest.mark.parametrize(
    "text",
    [
        PYTEST,
        CASE,
        PYTEST + HELPER,
        PYTEST + "\n\n@pytest.fixture\ndef one():\n    pass\n\n\n@pytest.fixture()\ndef two():\n    pass\n",
        CASE + "\n\nif __name__ == '__main__':\n    unittest.main()\n",
        "from unittest import TestCase\n\n\nclass It(TestCase):\n    def test_it(self):\n        pass\n",
        "import pytest\n\n\nclass TestIt:\n    def test_a(self):\n        pass\n",
    ],
)
def test_tests_are_known(text: str) -> None:
    assert holds_tests(text)


@pytest.mark.parametrize(
    "text",
    [
        "def test_model(model, loader):\n    pass\n",  # of a training script
        "import pytest\n\n\ndef test(model):\n    pass\n",
        "import unittest\n\n\ndef test_net(net):\n    pass\n",
        "import pytest\n\n\n@pytest.fixture\ndef test_net():\n    pass\n",  # helpers
        PYTEST + HELPER + HELPER.replace("make", "fit"),
        "import argparse\n" + PYTEST,
        PYTEST + "\n\nif __name__ == '__main__':\n    main()\n",
        PYTEST + "\n\nfor epoch in range(3):\n    train()\n",
        PYTEST + "print 'old'\n",
    ],
)
def test_others_are_none(text: str) -> None:
    assert not holds_tests(text)
