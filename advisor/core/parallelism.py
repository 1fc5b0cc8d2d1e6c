"""Which degrees of parallelism an architecture and the format of its weights allow."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from advisor.core.architecture import Architecture, Layer
from advisor.core.mixers import AttentionWithMamba, GroupedQueryAttention
from advisor.core.mlps import DenseMlp, Mlp
from advisor.core.quantization import QUANTIZABLE
from advisor.core.units import plain
from advisor.core.weights import Matrix


@dataclass(frozen=True)
class Fault:
    """A size of the model that, over `degree` ranks, is no whole multiple of `multiple`.

    `part` says in which matrices, where the format of the weights asks for the multiple.
    """

    what: str
    size: int
    degree: int
    multiple: int = 1
    part: str = ""

    @property
    def code(self) -> str:
        """The code of the rejection."""
        return f"{self.what}_not_divisible"

    @property
    def detail(self) -> str:
        """The rejection in a sentence."""
        if not self.part:
            return f"{self.what} {self.size} does not divide over {self.degree} ranks."
        share = self.size / self.degree
        return (
            f"{self.what}: {self.part} of {self.size} over {self.degree} ranks leave "
            f"{plain(share)} to each, which is no multiple of {self.multiple}."
        )


EXPERT_GROUP = 32
"""Kernels for INT4 experts halve a group until it divides, down to this (vLLM: moe_wna16.py)."""

FORMAT_RULES: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "fp8_block": {"rows": ("fp8_block", 128), "columns": ("fp8_block", 128)},
    "int4_awq": {"rows": ("int4_group", 128), "columns": ("int4_pack", 8)},
    "int4_gptq": {"rows": ("int4_group", 128), "columns": ("int4_pack", 8)},
    "int4_g64": {"rows": ("int4_group", 64), "columns": ("int4_pack", 8)},
    "int4_g32": {"rows": ("int4_group", 32), "columns": ("int4_pack", 8)},
    "int4_channel": {"rows": ("int4_pack", 8), "columns": ("int4_pack", 8)},
    "nvfp4": {"rows": ("nvfp4_group", 16)},
}
"""What a rank's inputs of a row-split matrix and outputs of a column-split one must be a multiple
of, by format. vLLM 0.33: `validate_fp8_block_shape` (each fused projection of its own), auto_awq.py
(groups of inputs; eight outputs share a word), modelopt.py (16 inputs share a scale). MXFP4 is
padded and refuses nothing."""

MARLIN_TILE: Mapping[str, int] = {"rows": 128, "columns": 64}
"""Inputs and outputs of a Marlin tile (marlin_utils.py). Before vLLM 0.26 padded to it, linear
layers in `MARLIN_FORMATS` had no other kernel in bf16; AWQ's own kernel took the others."""

MARLIN_FORMATS = ("int4_gptq", "int4_g64", "int4_g32", "int4_channel")

_HEADS_ALONE = ("linear_attention", "state_space")
"""Parts whose outputs are heads, which divide, and a few rates, which engines keep in 16 bits."""


def tensor_parallel_faults(
    shape: Architecture, ranks: int, expert_parallel: int = 1, attention_ranks: int | None = None,
    weights: str = "bf16", quantized: Collection[str] = QUANTIZABLE, marlin_tiles: bool = False,
) -> list[Fault]:  # fmt: skip
    """Why a model cannot be split so: a fault for each size that does not divide.

    `ranks` split the experts' width (`ranks / expert_parallel`, their number being split over
    `expert_parallel`), `attention_ranks` the heads, dense MLPs and shared experts (`ranks` when
    None); the parts in `quantized` are stored as `weights`, and with `marlin_tiles` an engine pads
    no tile. The rules are vLLM's: heads divide over ranks; KV heads divide, or are replicated
    evenly; the vocabulary is padded and never refuses.
    """
    attention = attention_ranks or ranks
    faults: list[Fault] = []
    for layer in shape.layer_counts:
        if layer.mixer is not None:
            faults += [Fault(*each, attention) for each in layer.mixer.split_faults(attention)]
        if layer.mlp is not None:
            faults += _mlp_faults(layer.mlp, ranks, expert_parallel, attention)
    for layer in shape.layer_counts if weights in FORMAT_RULES else ():
        for matrix in _matrices(layer, shape.hidden_size):
            expert = matrix.part == "experts"
            degree = ranks // expert_parallel if expert else matrix.ways(attention)
            if matrix.part in quantized:
                faults += _format_faults(matrix, degree, weights, marlin_tiles and not expert)
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.what == "marlin_tile")


@lru_cache(maxsize=1024)
def _matrices(layer: Layer, hidden: int) -> tuple[Matrix, ...]:
    """Those of a layer that take part in products."""
    return tuple(matrix for matrix in layer.matrices(hidden) if matrix.matmul_parameters)


def context_parallel_faults(shape: Architecture, ranks: int, degree: int) -> list[Fault]:
    """Why `degree` of the `ranks` of an attention group cannot share out the tokens of a sequence.

    They must hold the same KV heads: every rank holds the latent of MLA; grouped-query attention
    has `ranks / num_kv_heads` copies of each head, and its queries per KV head divide as well
    (vLLM 0.33, config/model.py: verify_with_parallel_config).
    """
    faults = []
    for layer in shape.layer_counts if degree > 1 else ():
        mixer = layer.mixer
        heads = mixer.attention if isinstance(mixer, AttentionWithMamba) else mixer
        if isinstance(heads, GroupedQueryAttention):
            sizes = {
                "kv_head_copies": max(1, ranks // heads.num_kv_heads),
                "queries_per_kv_head": heads.num_heads // heads.num_kv_heads,
            }
            faults += [Fault(name, size, degree) for name, size in sizes.items() if size % degree]
    return list(dict.fromkeys(faults))


def _mlp_faults(mlp: Mlp, ranks: int, experts: int, dense: int) -> list[Fault]:
    if isinstance(mlp, DenseMlp):
        sizes = {"intermediate_size": (mlp.intermediate_size, dense)}
    else:
        sizes = {
            "num_experts": (mlp.num_experts, experts),
            "expert_intermediate_size": (mlp.intermediate_size, ranks // experts),
            "shared_intermediate_size": (mlp.shared_intermediate_size, dense),
        }
    return [Fault(name, size, degree) for name, (size, degree) in sizes.items() if size % degree]


def _format_faults(matrix: Matrix, degree: int, weights: str, marlin_tiles: bool) -> list[Fault]:
    """The fault of a matrix, if it has one. What a rank holds whole is as it is stored."""
    side = "rows" if matrix.split == "rows" else "columns"
    rule = FORMAT_RULES[weights].get(side)
    if rule is None or degree == 1 or (matrix.part in _HEADS_ALONE and side == "columns"):
        return []
    what, multiple = rule
    if what == "int4_group" and matrix.part == "experts":
        multiple = min(multiple, EXPERT_GROUP)
    size = matrix.inputs if side == "rows" else matrix.piece
    rules = [(what, multiple)]
    if marlin_tiles and weights in MARLIN_FORMATS:
        rules.append(("marlin_tile", MARLIN_TILE[side]))
    return [
        Fault(name, size, degree, each, f"{matrix.part} {side}")
        for name, each in rules
        if size % (degree * each)
    ]
