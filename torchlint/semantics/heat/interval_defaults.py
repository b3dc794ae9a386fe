"""Intervals that are one step unless a user asks for more."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.heat.option_defaults import OptionDefaults
from torchlint.syntax.calls import identifier

# What users set to see or keep less: `log_every`, `print_freq`.
_TELLS = re.compile(
    r"log|print|save|eval|(^|_)val|test|display|show|(^|_)vis|plot|freq|interval|every|report|check|ckpt|summary|record|"
    r"dump|snapshot|sample|image|monitor|debug|wandb|(^|_)tb(_|$)"
)


def divides_all(divisor: cst.BaseExpression, defaults: OptionDefaults) -> bool:
    """Return whether every step has its turn by default: ``step % args.n_critic`` if ``n_critic`` is 1.

    Not where the divisor is named for what a run tells.
    """
    if not isinstance(divisor, (cst.Name, cst.Attribute)) or _TELLS.search(identifier(divisor).lower()):
        return False
    default = defaults.of_option(divisor)
    return default == 1 and default is not True
