"""Which degrees of parallelism an architecture allows."""

from __future__ import annotations

from advisor.core.architecture import Architecture
from advisor.core.mlps import DenseMlp, Mlp


def tensor_parallel_faults(
    shape: Architecture, ranks: int, expert_parallel: int = 1, attention_ranks: int | None = None
) -> list[tuple[str, int, int]]:
    """Why a model cannot be split so: (what, size, degree) for each that does not divide.

    `ranks` split the MLP's and the experts' width (`ranks / expert_parallel` for experts, whose
    number is split over `expert_parallel`), `attention_ranks` the heads (`ranks` when None). The
    rules are vLLM's: heads divide over ranks; KV heads divide, or are replicated evenly; the
    vocabulary is padded and never refuses.
    """
    attention = attention_ranks or ranks
    faults: list[tuple[str, int, int]] = []
    for layer in shape.layer_counts:
        if layer.mixer is not None:
            faults += [(*fault, attention) for fault in layer.mixer.split_faults(attention)]
        if layer.mlp is not None:
            faults += _mlp_faults(layer.mlp, ranks, expert_parallel, attention)
    return list(dict.fromkeys(faults))


def _mlp_faults(mlp: Mlp, ranks: int, experts: int, dense: int) -> list[tuple[str, int, int]]:
    if isinstance(mlp, DenseMlp):
        width = mlp.intermediate_size
        return [("intermediate_size", width, dense)] if width % dense else []
    faults = []
    if mlp.num_experts % experts:
        faults.append(("num_experts", mlp.num_experts, experts))
    if mlp.intermediate_size % (ranks // experts):
        faults.append(("expert_intermediate_size", mlp.intermediate_size, ranks // experts))
    if mlp.shared_intermediate_size % dense:
        faults.append(("shared_intermediate_size", mlp.shared_intermediate_size, dense))
    return faults
