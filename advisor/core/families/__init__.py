"""Model families: one function each, from the keys of a `config.json` to layers.

Adding a family is one function with `@family("its_model_type")` in one of these modules, and a test
against its published parameter count.
"""

from __future__ import annotations

from advisor.core.families import (
    classic,
    dense,
    experts,
    gemma,
    hybrid,
    latent,
    linear,
    shared_experts,
)
from advisor.core.families.register import FAMILIES, base_architecture, unread_shaping_keys

__all__ = [
    "FAMILIES",
    "base_architecture",
    "classic",
    "dense",
    "experts",
    "gemma",
    "hybrid",
    "latent",
    "linear",
    "shared_experts",
    "unread_shaping_keys",
]
