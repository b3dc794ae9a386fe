"""The rules: one module each, grouped by effect. `torchlint.registry` finds them."""
