"""What a simulation knows of one replica: step times, KV cache and limits."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.core.engines import EngineSettings
from advisor.core.layouts import Layout, stage_loads
from advisor.core.memory import stage_room
from advisor.core.model import ModelProfile
from advisor.core.paging import Paging
from advisor.core.steps import StepFunction, StepModel


@dataclass(frozen=True)
class ReplicaModel:
    """A replica: its step times, the KV cache of a rank of its tightest stage [bytes] (of all
    attention groups together) and how a sequence takes from it, how many sequences run and how many
    tokens a step computes, and the time before a request reaches the scheduler [s].

    A pipeline's step is a cycle in which each of its microbatches advances. Microbatches and
    attention groups are `lanes`: each has its part of the sequences and of the budget, and a prompt
    is computed in one of them.
    """

    step: StepFunction
    kv_bytes: float
    pages: Paging
    max_num_seqs: int
    max_num_batched_tokens: int
    lanes: int = 1
    front_end_s: float = 0.0

    def held_bytes(self, sequences: int, tokens: float, shared: float) -> float:
        """KV cache of sequences that hold so many tokens together, `shared` of them in a prefix
        that is kept once [bytes]. Each is taken at their mean length, which is exact but for
        windows that some have filled and others not."""
        if not sequences:
            return 0.0
        each, prefix = tokens / sequences, shared / sequences
        saved = (sequences - 1) * self.pages.shared_bytes(each, prefix) if shared else 0.0
        return sequences * self.pages.held_bytes(each) - saved


def replica_model(
    model: ModelProfile, layout: Layout, settings: EngineSettings, front_end_s: float = 0.0
) -> ReplicaModel:
    """A layout's replica under its engine's settings: limits count for each attention group, the
    token budget for each microbatch too."""
    split = layout.split
    rooms = [stage_room(model, layout, settings, stage) for stage in stage_loads(model, split)]
    longest = settings.max_model_len
    tightest = min(
        rooms, key=lambda each: each.kv_cache.value / max(each.pages.held_bytes(longest), 1.0)
    )
    groups = split.attention_data_parallel
    lanes = groups * split.pipeline_parallel
    return ReplicaModel(
        step=StepModel(model, [layout], settings.engine).step_function(),
        kv_bytes=tightest.kv_cache.value * groups,
        pages=tightest.pages,
        max_num_seqs=settings.max_num_seqs * groups,
        max_num_batched_tokens=settings.max_num_batched_tokens * lanes,
        lanes=lanes,
        front_end_s=front_end_s,
    )
