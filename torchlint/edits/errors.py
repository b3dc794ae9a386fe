"""Why a rewrite cannot be offered."""

from __future__ import annotations


class RenderError(Exception):
    """An operation cannot be written down at its place; the finding stays without a fix."""
