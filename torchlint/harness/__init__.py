"""Measures on the user's own device what fixes are worth: ``torchlint bench`` and ``torchlint verify``.

The only part of torchlint that imports torch, and only inside functions that run in worker processes.
"""
