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

from advisor.core.mixers import MIXERS, AttentionWithMamba, Mixer
from advisor.core.mlps import MLPS, Mlp, MoeMlp
from advisor.core.weights import Matrix, vectors

VOCABULARY_PADDING = 64
"""Engines pad the vocabulary to a multiple of this before splitting it."""


@dataclass(frozen=True)
class Layer:
    """One layer: a mixer and an MLP, either of which may be missing, and `norms` vectors of the
    hidden size (a LayerNorm with a bias counts as two).

    Where they run side by side on the same input (`parallel`), one all-reduce serves both.
    `per_layer_input` is the width of the layer's own token embedding, which a gate lets into the
    residual stream after the MLP (Gemma 3n and 4); every rank holds gate and projection. `streams`
    is how many residual streams hyper-connections mix before and after each block (DeepSeek V4).
    """

    mixer: Mixer | None
    mlp: Mlp | None
    norms: int = 2
    parallel: bool = False
    per_layer_input: int = 0
    streams: int = 1

    def matrices(self, hidden: int) -> tuple[Matrix, ...]:
        """Every weight of the layer."""
        parts = [part.matrices(hidden) for part in (self.mixer, self.mlp) if part is not None]
        own = self.per_layer_input
        return (
            *(m for part in parts for m in part),
            vectors("norms", self.norms * hidden),
            *([Matrix("mlp", hidden, own, "none"), Matrix("mlp", own, hidden, "none")] * bool(own)),
            *self._hyper_connections(hidden),
        )

    def _hyper_connections(self, hidden: int) -> tuple[Matrix, ...]:
        """For each block, what mixes the streams: n weights in, n out and n x n across."""
        if self.streams == 1:
            return ()
        mixed = self.streams * (2 + self.streams)
        part = "hyper_connections"
        return (Matrix(part, self.streams * hidden, mixed, "none", vector=mixed + 3),) * 2

    @property
    def all_reduces(self) -> int:
        """Sums over tensor-parallel ranks that the layer needs."""
        mixers = 2 if isinstance(self.mixer, AttentionWithMamba) else self.mixer is not None
        return 1 if self.parallel else mixers + (self.mlp is not None)


@dataclass(frozen=True)
class Architecture:
    """A whole model. `layers` in order; `quantized_parts` are those that the checkpoint stores in
    `weights_precision`, the rest stands in `plain_precision`.

    `context_length` is None where nothing limits it (pure state-space models). `positions` are
    learned position vectors, `final_norms` the vectors of the last norm. `head_bias` is a bias on
    the LM head; `per_layer_vocab` counts the tokens in the table of per-layer inputs.
    """

    family: str
    hidden_size: int
    vocab_size: int
    context_length: int | None
    tied_embeddings: bool
    layers: tuple[Layer, ...]
    positions: int = 0
    final_norms: int = 1
    head_bias: bool = False
    per_layer_vocab: int = 0
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
        return Matrix(
            "lm_head", self.hidden_size, self.vocab_size, vector=self.vocab_size * self.head_bias
        )

    @property
    def entrance(self) -> tuple[Matrix, ...]:
        """What stands before the layers besides the embedding: learned positions, and the table,
        projection and norm of per-layer inputs."""
        widths = [layer.per_layer_input for layer in self.layers]
        return (
            vectors("positions", self.positions * self.hidden_size),
            vectors("embedding", self.per_layer_vocab * sum(widths), "columns"),
            Matrix("mlp", self.hidden_size, sum(widths)),
            vectors("norms", max(widths, default=0)),
        )

    @property
    def exit(self) -> tuple[Matrix, ...]:
        """The norm after the last layer, on every rank, and what makes one stream of several."""
        norm = vectors("norms", self.final_norms * self.hidden_size)
        streams = self.layers[-1].streams
        if streams == 1:
            return (norm,)
        part, width = "hyper_connections", streams * self.hidden_size
        return norm, Matrix(part, width, streams, "none", vector=streams + 1)

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
        yield from ((matrix, 1) for matrix in (*self.entrance, *self.exit))
        head = self.lm_head
        yield (vectors("lm_head", head.vector, "columns") if self.tied_embeddings else head), 1

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
        return layers + (self.lm_head.matmul_parameters if self.tied_embeddings else 0)

    @cached_property
    def matmul_parameters(self) -> int:
        """Parameters one decoded token is multiplied with (2 FLOP each): no norms, no biases."""
        head = self.lm_head.matmul_parameters if self.tied_embeddings else 0
        return head + sum(c * m.used * m.matmul_parameters for m, c in self.matrices())

    @cached_property
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
    parts = {"mixer": _part_mapping(layer.mixer), "mlp": _part_mapping(layer.mlp)}
    return parts | {key: value for key, value in vars(layer).items() if key not in parts}


def _part_mapping(part: Any) -> Any:
    """A mixer or MLP with its kind, and with those it is made of; other values as they are."""
    kind = getattr(part, "kind", None)
    if kind is None:
        return part
    return {"kind": kind} | {key: _part_mapping(value) for key, value in vars(part).items()}


def _layer(document: Mapping[str, Any]) -> Layer:
    return Layer(**{key: _read(value) for key, value in document.items()})


def _read(document: Any) -> Any:
    """The mixer or MLP that a mapping describes; other values as they are."""
    if not isinstance(document, Mapping):
        return document
    values = {key: _read(value) for key, value in document.items() if key != "kind"}
    kinds: Mapping[str, type] = {**MIXERS, **MLPS}
    return kinds[document["kind"]](**values)
