"""The answer of a plan, field by field with units."""

from __future__ import annotations

from advisor.core.confidence import BASES
from advisor.core.engines import SAMPLERS
from advisor.core.hardware import ARITHMETIC
from advisor.core.workload import (
    BATCHINGS,
    ENGINES,
    EXPLANATIONS,
    KV_PRECISIONS,
    OBJECTIVES,
    SLO_KEYS,
    WEIGHT_PRECISIONS,
)
from advisor.schemas.base import Answer
from advisor.schemas.common import MessageAnswer
from advisor.schemas.containers import ListOf, MapOf, Section
from advisor.schemas.fields import Choice, Currency, DecimalText, Flag, Number, Text, Whole
from advisor.schemas.plan_explanation import (
    VERDICTS,
    BatchLimitAnswer,
    CrossingAnswer,
    DegreesAnswer,
    FormatsAnswer,
    MissedLimitAnswer,
    NextAcceleratorsAnswer,
    PlanInShortAnswer,
    SloSensitivityAnswer,
)
from advisor.schemas.workload import LimitsBody, PrecisionBody, ServingBody, Tokens, WorkloadBody

FITS = ("fits", "uncertain", "does_not_fit")
LIMITS_OF_A_STEP = ("compute", "memory_bandwidth", "interconnect", "overhead")


class CandidatePrecisionAnswer(Answer):
    """Number formats of a plan."""

    weights = Choice("Stored weights.", WEIGHT_PRECISIONS)
    kv_cache = Choice("KV cache.", KV_PRECISIONS)
    compute = Choice("Arithmetic of the matrix products.", ARITHMETIC)


class MemoryAnswer(Answer):
    """Memory: `*_gib` per accelerator, capacity and concurrency per replica."""

    weights_gib = Number("Weights [GiB per accelerator].")
    activation_gib = Number("Activation peak [GiB per accelerator].")
    reserve_gib = Number("What the engine and its graphs keep [GiB per accelerator].")
    kv_cache_gib = Number("Left for the KV cache [GiB per accelerator].")
    kv_cache_gib_range = ListOf(
        Number("[GiB]"), "Least and most that may be left for it [GiB per accelerator]."
    )
    kv_capacity_tokens = Whole("Tokens the KV cache holds [per replica].")
    max_concurrency = Whole("Requests of this workload that fit at once [per replica].")
    reported_kv_tokens = Whole(
        "KV cache size that the engine prints at start-up [tokens]: no capacity where layers are "
        "of several kinds; null: not known.",
        allow_none=True,
    )
    fit = Choice("Whether it fits; `uncertain`: by less than the error.", FITS)


class StatisticsAnswer(Answer):
    """Mean and percentiles over requests [ms]; null: not defined under this load."""

    mean = Number("[ms]", allow_none=True)
    p50 = Number("[ms]", allow_none=True)
    p95 = Number("[ms]", allow_none=True)
    p99 = Number("[ms]", allow_none=True)


class RatiosAnswer(Answer):
    """Ratios of the statistics of a latency; null: not defined under this load."""

    mean = Number(allow_none=True)
    p50 = Number(allow_none=True)
    p95 = Number(allow_none=True)
    p99 = Number(allow_none=True)


class LatencyAnswer(Answer):
    """Latency: on average E2E = TTFT + (output tokens - 1) x ITL."""

    ttft_ms = Section(StatisticsAnswer, "Time to first token, waiting included.")
    tpot_ms = Section(StatisticsAnswer, "Time per output token, one value per request.")
    itl_ms = Section(StatisticsAnswer, "Time between tokens, one value per gap.")
    e2e_ms = Section(StatisticsAnswer, "From arrival to last token.")


class ClassLatencyAnswer(Answer):
    """Latencies of the requests of one class. Time between tokens is that of all: the classes share
    the steps."""

    name = Text("Of the class.")
    ttft_ms = Section(StatisticsAnswer, "Time to first token, waiting included.")
    tpot_ms = Section(StatisticsAnswer, "Time per output token; null of answers of one token.")
    e2e_ms = Section(StatisticsAnswer, "From arrival to last token.")


class ThroughputAnswer(Answer):
    """Throughput of the whole plan."""

    output_tokens_per_s = Number("Under this load.", allow_none=True)
    requests_per_s = Number("Under this load.", allow_none=True)
    saturation_requests_per_s = Number("The most it serves.", allow_none=True)
    output_tokens_per_s_per_accelerator = Number("Under this load.", allow_none=True)
    saturation_output_tokens_per_s = Number("The most it serves.", allow_none=True)


class LoadAnswer(Answer):
    """How loaded the plan is."""

    verdict = Choice(
        "`near_saturation`: 98 % and more; `unstable`: 100 % and more, latencies are null.",
        VERDICTS,
    )
    utilization = Number("Load as a share of saturation.", allow_none=True)
    mean_concurrency = Number("Requests in the plan, on average.", allow_none=True)
    concurrency_per_replica = Number("Requests in a replica, on average.", allow_none=True)
    slot_wait_mean_ms = Number(
        "Mean wait for a place in the batch, a part of TTFT [ms]; null: it has no end, or was "
        "simulated and not told apart.",
        allow_none=True,
    )


class CostAnswer(Answer):
    """Cost, busy or idle; null without a price, per token also when unstable."""

    per_hour = DecimalText("Accelerators x price.", allow_none=True)
    per_million_output_tokens = DecimalText(
        "The whole cost over the output tokens.", allow_none=True
    )
    per_million_total_tokens = DecimalText(
        "The whole cost over input and output tokens.", allow_none=True
    )
    per_request = DecimalText("The whole cost over the requests served.", allow_none=True)
    currency = Currency(allow_none=True)
    price_as_of = Text("Day of the price; null: not known.", allow_none=True)


class EngineSettingsAnswer(Answer):
    """The engine with the settings that were used."""

    engine = Choice("", ENGINES)
    engine_version = Text("Version whose defaults and memory rules were used.")
    sampler = Choice("What samples tokens; null: the memory does not depend on it.", SAMPLERS,
                     allow_none=True)  # fmt: skip
    max_model_len = Whole("Longest request admitted [tokens].")
    max_num_seqs = Whole("Most sequences in a step.")
    max_num_batched_tokens = Whole("Most tokens in a step.")
    memory_utilization = Number("Share of the memory that the engine may use.")


class StepLimitAnswer(Answer):
    """What limits a step."""

    kind = Choice("The largest share.", LIMITS_OF_A_STEP)
    shares = MapOf(Number(), "Shares of the step's time; they add up to 1.", keys=LIMITS_OF_A_STEP)


class BottleneckAnswer(Answer):
    """What limits prefill and decode, and how full the memory is."""

    prefill = Section(StepLimitAnswer)
    decode = Section(StepLimitAnswer)
    prefill_time_share = Number("Share of the steps' time that prompts take.", allow_none=True)
    memory_capacity_used = Number("Share of an accelerator's memory in use.", allow_none=True)


class SloResultAnswer(Answer):
    """Whether the SLOs are met."""

    met = Flag("Every SLO is met.")
    met_probability = Number("How likely that is, given how far predictions lie from measurements.")
    attainment = Number("Share of the requests that meet all of them.", allow_none=True)
    goodput_requests_per_s = Number("Requests that meet all of them.", allow_none=True)
    binding = Text(
        "The SLO nearest to being missed, as `ttft_p95_ms`; one of a class as `ttft_p95_ms@name`.",
        allow_none=True,
    )


class MeasuredThroughputAnswer(Answer):
    """Throughput of the whole plan, simulated."""

    output_tokens_per_s = Number("Under this load.")
    requests_per_s = Number("Under this load.")


class AgreementAnswer(Answer):
    """The closed form over the simulation, figure by figure: 1 where they agree."""

    ttft = Section(RatiosAnswer)
    tpot = Section(RatiosAnswer)
    itl = Section(RatiosAnswer)
    e2e = Section(RatiosAnswer)
    throughput = Number("Of the output tokens per second.", allow_none=True)


class ClassAgreementAnswer(Answer):
    """The closed form over the simulation, for one class."""

    ttft = Section(RatiosAnswer)
    tpot = Section(RatiosAnswer)
    e2e = Section(RatiosAnswer)


class ClassSimulatedAnswer(Answer):
    """Latencies of one class that were simulated, and the closed form over them."""

    name = Text("Of the class.")
    ttft_ms = Section(StatisticsAnswer)
    tpot_ms = Section(StatisticsAnswer)
    e2e_ms = Section(StatisticsAnswer)
    agreement = Section(ClassAgreementAnswer)


class VerificationAnswer(Answer):
    """What a simulation of the plan, iteration by iteration, measures under the same load; of a
    trace, the trace replayed."""

    requests = Whole("Requests measured, after the warm-up; all of a trace.")
    reason = Text("Why the plan was not simulated; null: it was.", allow_none=True)
    preemptions_per_request = Number(
        "How often the KV cache was full and a request lost its place in it, to be computed anew.",
        allow_none=True,
    )  # fmt: skip
    latency = Section(LatencyAnswer, allow_none=True)
    throughput = Section(MeasuredThroughputAnswer, allow_none=True)
    agreement = Section(AgreementAnswer, allow_none=True)
    slo_met = Flag("Every SLO is met in the simulation.", allow_none=True)
    classes = ListOf(Section(ClassSimulatedAnswer), "Of each of the `workload.classes`.")


class ConfidenceAnswer(Answer):
    """Intervals that held for four of five measured benchmarks like the plan."""

    regime = Text("Kind of model, engine and generation.")
    basis = Choice(
        "`measured`: this engine, accelerator and model; `interpolated`: this engine and "
        "generation; `physics`: neither.", BASES,
    )  # fmt: skip
    tpot_ms = ListOf(Number("[ms]"), "Of the mean; null: not defined.", allow_none=True)
    ttft_ms = ListOf(Number("[ms]"), "Of the mean; null: not defined.", allow_none=True)
    output_tokens_per_s = ListOf(Number(), "Of the whole plan.", allow_none=True)


class CandidateAnswer(DegreesAnswer):
    """One plan: so many replicas, so split, on this hardware."""

    replicas = Whole()
    accelerators = Whole("Replicas x TP x PP.")
    precision = Section(CandidatePrecisionAnswer)
    memory = Section(MemoryAnswer)
    latency = Section(LatencyAnswer)
    classes = ListOf(
        Section(ClassLatencyAnswer),
        "Of each of `workload.classes`; empty where none are given.",
    )
    throughput = Section(ThroughputAnswer)
    load_ = Section(LoadAnswer, data_key="load")  # a schema has a method called load
    cost = Section(CostAnswer)
    serving = Section(EngineSettingsAnswer)
    bottleneck = Section(BottleneckAnswer)
    slo = Section(SloResultAnswer)
    confidence = Section(ConfidenceAnswer, "How sure the figures are.")
    verification = Section(
        VerificationAnswer,
        "null: not asked for by `verify` or a trace, or not among the plans simulated, or the "
        "figures of a burst, which are simulated themselves.",
        allow_none=True,
    )


class RejectedAnswer(DegreesAnswer):
    """A layout that cannot serve this, and what would help."""

    precision = Section(FormatsAnswer)
    code = Text("Stable identifier of the reason.")
    detail = Text("The reason, with figures.")
    remedy = Text("What would help.", allow_none=True)


class BatchingAnswer(Answer):
    """The plan under one kind of batching."""

    batching = Choice(
        "`continuous`: a request joins the batch at the next step, and leaves it when it is "
        "answered; `static`: a batch begins with what waits, and ends with its longest answer.",
        BATCHINGS,
    )  # fmt: skip
    slots = Whole("Most sequences of a batch [per replica].")
    verdict = Choice("Under this load.", VERDICTS)
    utilization = Number("Load as a share of saturation; null: not known of this kind of load.",
                         allow_none=True)  # fmt: skip
    ttft_p95_ms = Number("[ms]; of static batches simulated, where `verify` asks for it; null: "
                         "not, or too many requests.",
                         allow_none=True)  # fmt: skip
    tpot_p95_ms = Number("[ms]; likewise.", allow_none=True)
    e2e_p95_ms = Number("[ms]; likewise.", allow_none=True)
    saturation_output_tokens_per_s = Number("The most it serves.", allow_none=True)


class PlanInputsAnswer(Answer):
    """The request with every default filled in: itself a request with the same answer, once the
    profiles that were given whole are stored."""

    model = Text("Name of the model profile.")
    hardware = ListOf(Text("Name of a hardware profile."))
    workload = Section(WorkloadBody)
    slo = MapOf(Number("[ms]"), keys=SLO_KEYS)
    objective = Choice("", OBJECTIVES)
    precision = Section(PrecisionBody)
    limits = Section(LimitsBody)
    serving = Section(ServingBody)
    max_candidates = Whole()
    verify = Flag()
    explain = Choice("", EXPLANATIONS)


class TraceAnswer(Answer):
    """The steady load that a trace was taken for."""

    requests = Whole("In the trace.")
    duration_s = Number("From the first request to the last [s].")
    request_rate_per_s = Number("Mean arrivals [requests/s].")
    arrival_cv = Number("Of the times between arrivals within each tenth of the time.")
    peak_to_mean = Number("Of the fullest tenth of the time, less what chance adds.")
    input_tokens = Tokens("Log-normal of the mean and p95.")
    output_tokens = Tokens("Log-normal of the mean and p95.")


class UsedProfileAnswer(Answer):
    """A profile that a plan was made with."""

    pointer = Text("Where the request names it.")
    name = Text()
    version = Whole(
        "Its version, as its ETag gave it; null: the request brought it along.", allow_none=True
    )


class PlanAnswer(Answer):
    """Which plan is recommended, what else there is, and why."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    profiles = ListOf(
        Section(UsedProfileAnswer), "The profiles it was made with; older plans do not say.",
        optional=True,
    )  # fmt: skip
    coefficients_version = Text(
        "Tells the planner's coefficients of one release from those of another.", optional=True
    )
    inputs = Section(PlanInputsAnswer)
    trace = Section(
        TraceAnswer, "What was measured of the workload's trace; null: there is none.",
        allow_none=True,
    )  # fmt: skip
    recommended = Section(CandidateAnswer, "null: none; see `reason`.", allow_none=True)
    reason = Text("Why there is no recommendation.", allow_none=True)
    nearest = Section(
        CandidateAnswer, "The plan that comes closest, where none is recommended.", allow_none=True
    )
    missed_limits = ListOf(
        Section(MissedLimitAnswer), "Limits that the nearest plan misses, the worst first."
    )
    pareto = ListOf(
        Section(CandidateAnswer), "Front of p95 E2E against hourly cost, by rising cost."
    )
    candidates = ListOf(Section(CandidateAnswer), "Plans evaluated, best first.")
    candidates_total = Whole(
        "How many there are, those beyond `max_candidates` counted. Of a burst: those simulated."
    )
    rejected = ListOf(Section(RejectedAnswer), "Layouts that cannot be, and why.")
    replicas_vs_tensor_parallel = ListOf(
        Section(PlanInShortAnswer),
        "The accelerators of the plan spent in every way its layouts allow.",
    )
    crossing_loads = ListOf(
        Section(CrossingAnswer),
        "Where another of these ways becomes the better one; empty: there is one way; null: not "
        "asked for by `explain`.",
        allow_none=True,
    )
    batch_limit = Section(
        BatchLimitAnswer,
        "Of the plan, where SLOs on TPOT keep its `serving.max_num_seqs` small; null: they do not.",
        allow_none=True,
    )
    next_accelerators = ListOf(
        Section(NextAcceleratorsAnswer), "What the next larger plans are like."
    )
    slo_sensitivity = ListOf(
        Section(SloSensitivityAnswer), "What would be recommended with each SLO 20 % looser."
    )
    continuous_vs_static = ListOf(
        Section(BatchingAnswer),
        "The plan with continuous batching, as all plans here, and with static batches; empty with "
        "speculative decoding, which is not known of these.",
    )
    explanation = ListOf(Text(), "The choice in sentences.")
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    planner_version = Text("Version of the service.")
