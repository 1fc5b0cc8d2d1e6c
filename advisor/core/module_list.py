"""Lists of modules, as quantization tools write them to say what they quantized or left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice, product

_OTHER_NAMES = {
    "language_model.": "",  # text parts of multimodal models
    "backbone.": "model.",
    ".feed_forward": ".mlp",
    ".block_sparse_moe": ".mlp",
    ".mixer.experts": ".mlp.experts",
    ".mixer.shared_experts": ".mlp.shared_experts",
    ".mixer.q_proj": ".self_attn.q_proj",
    ".mixer.o_proj": ".self_attn.o_proj",
    ".mixer.up_proj": ".mlp.up_proj",
    ".mixer.down_proj": ".mlp.down_proj",
    ".q_b_proj": ".q_proj",
    ".qkv_proj": ".q_proj",
    ".gate_up_proj": ".up_proj",
    ".in_proj_qkvz": ".in_proj_qkv",
    ".w2": ".down_proj",
    ".w3": ".up_proj",
}
"""What families call the modules otherwise that Llama, DeepSeek or Qwen call so."""

_MOST_PATTERNS, _MOST_WILD_PATTERNS = 500, 50
"""Different patterns of modules, and those with part of a layer's number (tried on every layer):
published checkpoints have some dozens."""


class ModuleList:
    """A list of modules, as tools write them: names, patterns (`*`), expressions (`re:`).

    Names and patterns are kept by the number of their layer, "" for those of every layer; `wild`
    are the patterns with part of a number.
    """

    def __init__(self, listed: Iterable[str]) -> None:
        """ValueError where there are more patterns than anyone writes."""
        self.names: dict[str, set[str]] = {}
        self.patterns: dict[str, set[str]] = {}
        self.wild: set[str] = set()
        for name in listed:
            for pattern in _globs(name[3:]) if name.startswith("re:") else (name,):
                self._add(_usual(pattern))
        distinct = set().union(*self.patterns.values())
        if len(distinct) > _MOST_PATTERNS or len(self.wild) > _MOST_WILD_PATTERNS:
            raise ValueError("too many patterns of modules")
        self._known: dict[tuple[str, str], bool] = {}

    def _add(self, name: str) -> None:
        head, layers, rest = name.rpartition("layers.")
        number, _, module = rest.partition(".")
        if layers and number.isdigit():
            if fnmatchcase("model.", head or "*"):
                self._keep(number, module)
        elif layers and any(map(str.isdigit, number)):
            self.wild.add(name)
        else:
            self._keep("", name)

    def _keep(self, number: str, name: str) -> None:
        kept = self.patterns if set("*?[") & set(name) else self.names
        kept.setdefault(number, set()).add(name)

    def has(self, layer: int, module: str) -> bool:
        """Whether `model.layers.{layer}.{module}`, or a module that holds it, is in the list."""
        return (
            self._listed("", f"model.layers.N.{module}")
            or self._listed(str(layer), module)
            or any(fnmatchcase(f"model.layers.{layer}.{module}", p) for p in self.wild)
        )

    def _listed(self, number: str, module: str) -> bool:
        key = number, module
        if key not in self._known:
            words = module.split(".")
            first = range(len(words)) if number == "" else (0,)
            runs = {".".join(words[i:j]) for i in first for j in range(i, len(words) + 1)}
            self._known[key] = not runs.isdisjoint(self.names.get(number, ())) or any(
                fnmatchcase(module, p) or fnmatchcase(module, f"{p}.*")
                for p in self.patterns.get(number, ())
            )
        return self._known[key]


def _usual(name: str) -> str:
    """The module as Llama, DeepSeek or Qwen call it."""
    for other, usual in _OTHER_NAMES.items():
        name = name.replace(other, usual)
    return re.sub(r"shared_expert\b", "shared_experts", name)


def _globs(expression: str) -> list[str]:
    """The plain patterns of a regular expression made of `.*`, escaped dots and `(a|b)` groups.

    Such expressions come from callers, so none is ever compiled.
    """
    pieces = re.split(r"\(([^()]*)\)", expression)
    choices = [p.split("|") if i % 2 else [p] for i, p in enumerate(pieces)]
    joined = ("".join(each) for each in islice(product(*choices), _MOST_PATTERNS + 1))
    plain = {r"\.": ".", ".*": "*", r"\d+": "*"}
    return [
        re.sub(r"\\\.|\.\*|\\d\+", lambda found: plain[found[0]], g).strip("^$") for g in joined
    ]
