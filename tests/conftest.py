"""What all tests share."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("loaded", deadline=None, suppress_health_check=[HealthCheck.too_slow])


def pytest_configure() -> None:
    """Let programs that tests start be interrupted, also where the tests run in the background of a script.

    A shell without job control starts background commands with SIGINT ignored, and children inherit that. No test fails
    for the time that it takes: the machine may have other things to do.
    """
    settings.load_profile("loaded")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the terminal of whoever runs the tests out of what they see."""
    for name in ("FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
