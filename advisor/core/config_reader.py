"""Reading a `config.json` strictly: each key by its meaning, each fault by its key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.core.errors import ABSENT, FieldError, InvalidInput, between, nearest_name

MAX_SIZE = 10**9
"""No dimension or vocabulary comes near this; larger ones are mistakes."""


SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "n_embed", "d_model", "hidden_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "max_position_embeddings": (
        "n_positions", "max_seq_len", "max_sequence_length", "seq_length", "model_max_length",
    ),
    "num_experts_per_tok": (
        "num_experts_per_token", "experts_per_token", "moe_k", "moe_topk", "moe_top_k",
        "top_k_experts",
    ),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "tie_word_embeddings": ("tie_embedding",),
}  # fmt: skip
"""Other names that configs use for the common keys."""


class ConfigReader:
    """A `config.json`-shaped mapping that remembers which keys were read.

    `defaults` hold what published configs of the family leave out because it is what the family's
    config class has anyway.

    Every method raises InvalidInput naming the key (as a JSON pointer below `pointer`).
    """

    def __init__(self, config: Mapping[str, Any], pointer: str = "/hf_config") -> None:
        self.config = config
        self.pointer = pointer
        self.read: set[str] = set()
        self.defaults: Mapping[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """The raw value under the key or another spelling of it, or `default` if absent or null."""
        for name in (key, *SPELLINGS.get(key, ())):
            self.read.add(name)
            if self.config.get(name) is not None:
                return self.config[name]
        return self.defaults.get(key, default)

    def refuse(self, key: str, detail: str, **figures: Any) -> InvalidInput:
        """The error for a key of this config."""
        return InvalidInput(FieldError(f"{self.pointer}/{key}", detail, **figures))

    def size(self, *keys: str, minimum: int = 1) -> int:
        """A required size under the first of `keys` that is there."""
        for key in keys:
            if self.get(key) is not None:
                return self._whole(key, minimum)
        detail = f"The config needs {keys[0]}."
        close = nearest_name(keys[0], self.config)
        raise self.refuse(keys[0], detail, nearest=close if close else ABSENT)

    def size_or(self, key: str, default: int, minimum: int = 0) -> int:
        """An optional size."""
        return default if self.get(key) is None else self._whole(key, minimum)

    def optional_size(self, key: str) -> int | None:
        """A size that may be absent or null."""
        return None if self.get(key) is None else self._whole(key, 1)

    def flag(self, key: str, default: bool = False) -> bool:
        """An optional true or false."""
        value = self.get(key, default)
        if not isinstance(value, bool):
            raise self.refuse(key, f"{key} is true or false.", given=value)
        return value

    def text(self, key: str) -> str:
        """An optional name; "" where there is none."""
        value = self.get(key)
        if value is not None and not (isinstance(value, str) and value):
            raise self.refuse(key, f"{key} is a name.", given=value)
        return value or ""

    def dtype(self) -> str:
        """The model's own format, "" where it is not said."""
        named = self.text("torch_dtype") or self.text("dtype")
        return named.removeprefix("torch.")

    def whole_numbers(self, key: str) -> frozenset[int]:
        """An optional list of whole numbers."""
        value = self.get(key, [])
        whole = isinstance(value, list) and all(type(each) is int for each in value)
        if not whole:
            raise self.refuse(key, f"{key} lists whole numbers.", given=value)
        return frozenset(value)

    def names(self, key: str, allowed: Iterable[str], length: int) -> list[str] | None:
        """An optional list of `length` names, each one of `allowed`."""
        value = self.get(key)
        if value is None:
            return None
        choices = sorted(allowed)
        if not isinstance(value, list) or len(value) != length:
            raise self.refuse(key, f"{key} lists one name for each of {length} layers.")
        for name in value:
            if name not in choices:
                raise self.refuse(key, f"{name!r} is no kind of layer here.", allowed=choices)
        return value

    def _whole(self, key: str, minimum: int) -> int:
        value = self.get(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, f"{key} is a whole number.", given=value)
        if not minimum <= value <= MAX_SIZE:
            raise self.refuse(
                key, f"{key} lies between {minimum} and {MAX_SIZE}.",
                given=value, allowed=between(minimum, MAX_SIZE),
            )  # fmt: skip
        return value
