"""`python -m advisor`: the command line."""

from __future__ import annotations

from advisor.cli import main

main(prog_name="python -m advisor")
