"""The shape of a model, layer by layer, from which memory and work are counted.

A model is an embedding, a row of layers, a final norm and an LM head. A layer has a mixer
(attention or a recurrent layer), an MLP (dense or mixture of experts), or one of the two. Each
names its weight matrices once, with how they may be split; parameters, bytes on a rank and FLOP
all follow from that list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from advisor.core.mixers import MIXERS, Mixer
from advisor.core.mlps import MLPS, Mlp, MoeMlp
from advisor.core.weights import Matrix, vectors

VOCABULARY_PADDING = 64
"""Engines pad the vocabulary to a multiple of this before splitting it."""


@dataclass(frozen=True)
class Layer:
    """One layer: a mixer and an MLP, either of which may be missing, and `norms` vectors of the
    hidden size (a LayerNorm with a bias counts as two).

    Where they run side by side on the same input (`parallel`), one all-reduce serves both.
    """

    mixer: Mixer | None
    mlp: Mlp | None
    norms: int = 2
    parallel: bool = False

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Every weight of the layer."""
        parts = [part.matrices(hidden) for part in (self.mixer, self.mlp) if part is not None]
        return (*(m for part in parts for m in part), vectors("norms", self.norms * hidden))

    @property
    def all_reduces(self) -> int:
        """Sums over tensor-parallel ranks that the layer needs."""
        blocks = (self.mixer is not None) + (self.mlp is not None)
        return 1 if self.parallel else blocks


@dataclass(frozen=True)
class Architecture:
    """A whole model. `layers` in order; `quantized_parts` are those that the checkpoint stores in
    `weights_precision`, the rest stands in `plain_precision`.

    `context_length` is None where nothing limits it (pure state-space models). `positions` are
    learned position vectors, `final_norms` the vectors of the last norm.
    """

    family: str
    hidden_size: int
    vocab_size: int
    context_length: int | None
    tied_embeddings: bool
    layers: tuple[Layer, ...]
    positions: int = 0
    final_norms: int = 1
    plain_precision: str = "bf16"
    weights_precision: str = "bf16"
    quantized_parts: tuple[str, ...] = ()
    kv_cache_precision: str = "bf16"

    @property
    def embedding(self) -> Matrix:
        """The input embedding table: looked up, never multiplied."""
        return vectors("embedding", self.vocab_size * self.hidden_size, "columns")

    @property
    def lm_head(self) -> Matrix:
        """The output projection (stored once with the embedding where they are tied)."""
        return Matrix("lm_head", self.hidden_size, self.vocab_size)

    @property
    def ends(self) -> tuple[Matrix, ...]:
        """Learned positions before the layers and the norm after them, on every rank."""
        return (
            vectors("positions", self.positions * self.hidden_size),
            vectors("norms", self.final_norms * self.hidden_size),
        )

    @cached_property
    def layer_counts(self) -> dict[Layer, int]:
        """Each kind of layer and how many there are."""
        return Counter(self.layers)

    def matrices(self) -> Iterator[tuple[Matrix, int]]:
        """Every stored weight of the model with the number of layers that have it."""
        yield self.embedding, 1
        for layer, count in self.layer_counts.items():
            for matrix in layer.matrices(self.hidden_size):
                yield matrix, count
        yield from ((matrix, 1) for matrix in self.ends)
        if not self.tied_embeddings:
            yield self.lm_head, 1

    @cached_property
    def parameters_by_part(self) -> dict[str, int]:
        """Stored parameters, by part."""
        totals: dict[str, int] = {}
        for matrix, count in self.matrices():
            totals[matrix.part] = totals.get(matrix.part, 0) + count * matrix.parameters
        return {part: total for part, total in totals.items() if total}

    @property
    def total_parameters(self) -> int:
        """Stored parameters."""
        return sum(self.parameters_by_part.values())

    @cached_property
    def active_parameters(self) -> int:
        """Parameters one decoded token uses: the LM head in, the lookup tables out."""
        tables = ("embedding", "positions")
        layers = sum(c * m.active_parameters for m, c in self.matrices() if m.part not in tables)
        return layers + (self.lm_head.parameters if self.tied_embeddings else 0)

    @cached_property
    def matmul_parameters(self) -> int:
        """Parameters one decoded token is multiplied with (2 FLOP each): no norms, no biases."""
        head = self.lm_head.matmul_parameters if self.tied_embeddings else 0
        return head + sum(c * m.used * m.matmul_parameters for m, c in self.matrices())

    @property
    def moe(self) -> MoeMlp | None:
        """The mixture-of-experts block, where the model has one."""
        return next((x.mlp for x in self.layers if isinstance(x.mlp, MoeMlp)), None)


def as_mapping(architecture: Architecture) -> dict[str, Any]:
    """The architecture in its API form: named layer kinds and the pattern they repeat in."""
    kinds = _distinct({layer: _kind_name(layer) for layer in architecture.layer_counts})
    names = [kinds[layer] for layer in architecture.layers]
    plain = {
        f.name: getattr(architecture, f.name) for f in fields(Architecture) if f.name != "layers"
    }
    plain["quantized_parts"] = list(architecture.quantized_parts)
    return plain | {
        "num_layers": len(names),
        "layer_kinds": {name: _layer_mapping(layer) for layer, name in kinds.items()},
        "layer_pattern": names[: _period(names)],
    }


def from_mapping(document: Mapping[str, Any]) -> Architecture:
    """Read the API form; the pattern is repeated until `num_layers` layers stand.

    KeyError or TypeError where a field is missing or unknown: the schema checks that before.
    """
    kinds = {name: _layer(kind) for name, kind in document["layer_kinds"].items()}
    pattern, count = document["layer_pattern"], document["num_layers"]
    known = {f.name for f in fields(Architecture)} - {"layers"}
    plain = {key: value for key, value in document.items() if key in known}
    plain["quantized_parts"] = tuple(plain.get("quantized_parts") or ())
    layers = tuple(kinds[pattern[i % len(pattern)]] for i in range(count))
    return Architecture(layers=layers, **plain)


def _kind_name(layer: Layer) -> str:
    window = getattr(layer.mixer, "window", None)
    mixer = "sliding" if window else layer.mixer.kind if layer.mixer else None
    return "_".join(part for part in (mixer, layer.mlp.kind if layer.mlp else None) if part)


def _distinct(kinds: dict[Layer, str]) -> dict[Layer, str]:
    seen: dict[str, int] = {}
    distinct = {}
    for layer, name in kinds.items():
        seen[name] = seen.get(name, 0) + 1
        distinct[layer] = name if seen[name] == 1 else f"{name}_{seen[name]}"
    return distinct


def _period(names: list[str]) -> int:
    """Length of the shortest pattern that gives `names` when repeated and cut off."""
    return next(
        p for p in range(1, len(names) + 1) if names == (names[:p] * len(names))[: len(names)]
    )


def _layer_mapping(layer: Layer) -> dict[str, Any]:
    return {
        "mixer": layer.mixer and {"kind": layer.mixer.kind} | vars(layer.mixer),
        "mlp": layer.mlp and {"kind": layer.mlp.kind} | vars(layer.mlp),
        "norms": layer.norms,
        "parallel": layer.parallel,
    }


def _layer(document: Mapping[str, Any]) -> Layer:
    return Layer(
        mixer=_read(MIXERS, document.get("mixer")),
        mlp=_read(MLPS, document.get("mlp")),
        norms=document.get("norms", 2),
        parallel=document.get("parallel", False),
    )


def _read(kinds: Mapping[str, type], document: Mapping[str, Any] | None) -> Any:
    if document is None:
        return None
    values = dict(document)
    return kinds[values.pop("kind")](**values)
