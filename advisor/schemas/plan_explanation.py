"""What else a plan answers of its choice: other plans in short, and where the choice changes."""

from __future__ import annotations

from advisor.core.crossing import METRICS
from advisor.core.next_accelerators import KINDS
from advisor.core.workload import KV_PRECISIONS, WEIGHT_PRECISIONS
from advisor.schemas.base import Answer
from advisor.schemas.containers import Section
from advisor.schemas.fields import Choice, DecimalText, Number, Text, Whole

VERDICTS = ("stable", "near_saturation", "unstable", "closed_loop", "saturated")


class FormatsAnswer(Answer):
    """Number formats of a layout."""

    weights = Choice("", WEIGHT_PRECISIONS)
    kv_cache = Choice("", KV_PRECISIONS)


class DegreesAnswer(Answer):
    """How a layout splits a model over accelerators."""

    hardware = Text("Name of the hardware profile.")
    tensor_parallel = Whole()
    pipeline_parallel = Whole()
    expert_parallel = Whole()
    attention_data_parallel = Whole()
    decode_context_parallel = Whole()


class TailAnswer(Answer):
    """Latencies of the slower requests."""

    ttft_p95_ms = Number("[ms]", allow_none=True)
    tpot_p95_ms = Number("[ms]", allow_none=True)
    e2e_p95_ms = Number("[ms]", allow_none=True)


class WayAnswer(DegreesAnswer):
    """So many replicas of a layout."""

    accelerators = Whole()
    replicas = Whole()
    precision = Section(FormatsAnswer)


class FiguresAnswer(TailAnswer):
    """What a plan costs and does."""

    cost_per_hour = DecimalText("Accelerators x price; null: no price.", allow_none=True)
    cost_per_million_output_tokens = DecimalText(
        "The whole cost over the output tokens.", allow_none=True
    )
    verdict = Choice("Under this load.", VERDICTS)
    utilization = Number("Load as a share of saturation.", allow_none=True)
    saturation_output_tokens_per_s = Number("The most it serves.", allow_none=True)


class PlanInShortAnswer(WayAnswer, FiguresAnswer):
    """A plan in its main figures."""


class CrossingAnswer(Answer):
    """A load at which another way to spend the same accelerators becomes the better one."""

    metric = Choice(
        "What is better: the least p95 E2E (`e2e_p95_ms`), or the least of those that meet every "
        "SLO (`slo`). Loads count up to `max_utilization`.",
        METRICS,
    )  # fmt: skip
    request_rate_per_s = Number("Of an open load; null: see `reason`.", allow_none=True)
    concurrency = Whole("Of a closed load, the first that is above.", allow_none=True)
    better_below = Section(WayAnswer, "null: none can.", allow_none=True)
    better_above = Section(WayAnswer, "null: none can.", allow_none=True)
    reason = Text("Why the better way never changes; null: it does.", allow_none=True)


class BatchAnswer(TailAnswer):
    """A plan with one limit on the sequences that run at once."""

    max_num_seqs = Whole("Most sequences in a step.")
    output_tokens_per_s = Number("Under this load.")
    slot_wait_mean_ms = Number("Mean wait for a place [ms]; null: it has no end.", allow_none=True)


class BatchLimitAnswer(Answer):
    """What a batch costs that is kept small for the SLOs on TPOT."""

    kept = Section(BatchAnswer, "As planned.")
    unlimited = Section(BatchAnswer, "As without SLOs on TPOT.")


class ChangeAnswer(TailAnswer):
    """The figure of another plan less that of the one recommended; null where one has none."""

    accelerators = Whole()
    cost_per_hour = DecimalText("", allow_none=True)
    saturation_output_tokens_per_s = Number("The most it serves.", allow_none=True)


class NextAcceleratorsAnswer(Answer):
    """A plan one step larger, on the hardware recommended."""

    kind = Choice(
        "`another_replica`: one more of the plan recommended; `more_accelerators`: the fastest of "
        "the next higher number of accelerators (under `throughput` the one that serves most).",
        KINDS,
    )  # fmt: skip
    plan = Section(PlanInShortAnswer, allow_none=True)
    change = Section(ChangeAnswer, allow_none=True)
    reason = Text("Why there is no such plan; null: there is.", allow_none=True)


class SloSensitivityAnswer(Answer):
    """What would be recommended under another limit, the other limits as they are."""

    slo = Text("The limit that is another, as `ttft_p95_ms`; one of a class as `ttft_p95_ms@name`.")
    limit_ms = Number("As it is [ms].")
    instead_ms = Number("20 % looser; with `explain` full also 20 % tighter [ms].")
    plan = Section(PlanInShortAnswer, allow_none=True)
    saved_per_hour = DecimalText(
        "Cost of the plan recommended less that of this one; null: one of them has none.",
        allow_none=True,
    )
    saved_per_million_output_tokens = DecimalText("The same by what is served.", allow_none=True)
    reason = Text("Why no plan is named; null: one is.", allow_none=True)


class MissedLimitAnswer(Answer):
    """A limit of the request that the nearest plan misses."""

    limit = Text("Name of the limit or SLO.")
    times = Number(
        "What the plan has over what is allowed (of `min_met_probability`: its latency over the "
        "one that would be sure enough); null: without end.",
        allow_none=True,
    )
