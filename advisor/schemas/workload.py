"""The ask of a plan: workload, SLOs, limits and serving settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from advisor.core.engines import SAMPLERS
from advisor.core.lengths import MAX_P95_TO_MEAN, MOST_GROUPS, Length, RequestClass
from advisor.core.trace import FEWEST_TRACED, MOST_TRACED, Trace
from advisor.core.workload import (
    CLASS_SLO_KEYS,
    ENGINES,
    KV_PRECISIONS,
    NO_SPECULATION,
    REQUESTS_A_CLIENT,
    ROUTINGS,
    STARTS,
    WEIGHT_PRECISIONS,
    Limits,
    Serving,
    Speculation,
    Workload,
)
from advisor.schemas.base import Closed
from advisor.schemas.containers import Either, ListOf, MapOf, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import Choice, Flag, JsonSchema, Money, Name, Number, Text, Whole

MOST_TOKENS = 10_000_000
MOST_DEGREE = 1024
MOST_REQUESTS = 100_000
MOST_CLASSES = 16
MOST_VALUES = 64
MOST_LENGTHS = 64
"""Lengths that latencies are computed for, over all classes: more would take seconds."""

LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e9


_LENGTHS = ("input_tokens", "output_tokens")


class TokenDistributionBody(Closed):
    """Log-normal lengths."""

    mean = Number("Mean [tokens].", 1, MOST_TOKENS, required=True)
    p95 = Number(
        f"95th percentile [tokens]: above the mean, at most {MAX_P95_TO_MEAN:.3f} times it.",
        1, MOST_TOKENS, required=True,
    )  # fmt: skip

    @validates_schema
    def log_normal(self, data: dict[str, Any], **_: Any) -> None:
        """A log-normal of this mean and p95 has to exist."""
        mean, p95 = data["mean"], data["p95"]
        if not mean < p95 <= MAX_P95_TO_MEAN * mean:
            wrong = fault(
                "No log-normal has this mean and p95; for lengths all alike, give one number.",
                given=p95,
                allowed={"exclusiveMinimum": mean, "maximum": MAX_P95_TO_MEAN * mean},
            )
            raise ValidationError({"p95": wrong.messages})

    @post_load
    def as_length(self, data: dict[str, Any], **_: Any) -> Length:
        """The core's length."""
        return Length(**data)


class TokenHistogramBody(Closed):
    """Lengths as they were counted."""

    values = ListOf(
        Number("[tokens]", 1, MOST_TOKENS), "Lengths [tokens].",
        fewest=1, most=MOST_VALUES, unique=True, required=True,
    )  # fmt: skip
    weights = ListOf(
        Number("", 0, MOST_WEIGHT), "How frequent each is, in any unit; null: all alike.",
        fewest=1, most=MOST_VALUES, allow_none=True, load_default=None,
    )  # fmt: skip

    @validates_schema
    def weigh_each(self, data: dict[str, Any], **_: Any) -> None:
        """A weight for each value, and not only zeros."""
        weights, count = data["weights"], len(data["values"])
        if weights is None:
            return
        if len(weights) != count:
            allowed = {"minimum_items": count, "maximum_items": count}
            detail = f"There are {count} values and {len(weights)} weights."
            raise ValidationError({"weights": fault(detail, allowed=allowed).messages})
        if not any(weights):
            raise ValidationError({"weights": fault("At least one weight is above 0.").messages})

    @post_load
    def as_length(self, data: dict[str, Any], **_: Any) -> Length:
        """The core's length."""
        return Length.histogram(**data)


class Tokens(Either):
    """A length: a number when all are alike, or a distribution."""

    def __init__(self, doc: str, **kwargs: Any) -> None:
        number = Number("All alike [tokens].", 1, MOST_TOKENS)
        super().__init__(number, TokenDistributionBody, doc, **kwargs)
        self.histogram = TokenHistogramBody()

    def _read(self, value: Any) -> Length:
        if isinstance(value, Mapping) and {"values", "weights"} & set(value):
            counted: Length = self.histogram.load(value)
            return counted
        loaded = super()._read(value)
        return loaded if isinstance(loaded, Length) else Length(loaded)

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """A number or either kind of distribution."""
        schema = super().json_schema(converter)
        return {"anyOf": [*schema["anyOf"], converter.resolve_nested_schema(self.histogram)]}


class RequestClassBody(Closed):
    """Requests alike in kind."""

    name = Name("null: `class-1`, `class-2` ... by its place.", allow_none=True, load_default=None)
    weight = Number(
        "How frequent its requests are, in any unit.", LEAST_WEIGHT, MOST_WEIGHT, required=True
    )
    input_tokens = Tokens("Prompt length.", required=True)
    output_tokens = Tokens("Answer length.", required=True)
    prefix_cache_hit = Number(
        "Share of its input tokens found in the prefix cache; null: the workload's.", 0, 1,
        allow_none=True, load_default=None,
    )  # fmt: skip
    slo = MapOf(
        Number("[ms]", 1e-3, 1e9), "Upper bounds of its own [ms], beside those of all requests.",
        keys=CLASS_SLO_KEYS, load_default=dict,
    )  # fmt: skip


class TraceBody(Closed):
    """Requests as they came, a list for each figure."""

    sent_s = ListOf(
        Number("[s]", 0, 1e10), "When each was sent [s], none before the one before it.",
        fewest=FEWEST_TRACED, most=MOST_TRACED, required=True,
    )  # fmt: skip
    input_tokens = ListOf(
        Whole("[tokens]", 1, MOST_TOKENS), "Prompt lengths.",
        fewest=FEWEST_TRACED, most=MOST_TRACED, required=True,
    )  # fmt: skip
    output_tokens = ListOf(
        Whole("[tokens]", 1, MOST_TOKENS), "Answer lengths.",
        fewest=FEWEST_TRACED, most=MOST_TRACED, required=True,
    )  # fmt: skip

    @validates_schema
    def one_of_each(self, data: dict[str, Any], **_: Any) -> None:
        """Each request has its lengths, and time passes."""
        sent_s, count = data["sent_s"], len(data["sent_s"])
        for name in ("input_tokens", "output_tokens"):
            if len(data[name]) != count:
                wrong = fault(
                    f"There are {count} times and {len(data[name])} lengths.",
                    allowed={"minimum_items": count, "maximum_items": count},
                )
                raise ValidationError({name: wrong.messages})
        for i in range(1, count):
            if sent_s[i] < sent_s[i - 1]:
                wrong = fault("This time is before that of the request before it.",
                              given=sent_s[i], allowed={"minimum": sent_s[i - 1]})  # fmt: skip
                raise ValidationError({"sent_s": {i: wrong.messages}})
        if sent_s[-1] == sent_s[0]:
            wrong = fault("All requests were sent at once: that has no rate.")
            raise ValidationError({"sent_s": wrong.messages})

    @post_load
    def as_trace(self, data: dict[str, Any], **_: Any) -> Trace:
        """The core's trace."""
        return Trace(*(tuple(data[name]) for name in ("sent_s", "input_tokens", "output_tokens")))


class WorkloadBody(Closed):
    """What arrives: exactly one of an open rate, a closed concurrency, or saturation."""

    request_rate_per_s = Number(
        "Open load: mean arrivals in all [requests/s].", 1e-6, 1e6,
        allow_none=True, load_default=None,
    )  # fmt: skip
    concurrency = Whole(
        "Closed load: requests in flight in all.", 1, 1_000_000,
        allow_none=True, load_default=None,
    )  # fmt: skip
    saturate = Flag("As much as is served.", load_default=False)
    trace = Section(
        TraceBody, "Open load: requests as they came, in place of a rate and of lengths; the best "
        "plans are simulated under it.", allow_none=True, load_default=None,
    )  # fmt: skip
    input_tokens = Tokens(
        "Prompt length; null: those of the trace or the classes.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    output_tokens = Tokens(
        "Answer length; null: those of the trace or the classes.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    classes = ListOf(
        Section(RequestClassBody),
        "Several kinds of requests in one stream, in place of the lengths.",
        fewest=1, most=MOST_CLASSES, allow_none=True, load_default=None,
    )  # fmt: skip
    arrival_cv = Number(
        "Coefficient of variation of the times between arrivals; 1: Poisson.", 0, 100,
        load_default=1.0,
    )  # fmt: skip
    peak_to_mean = Number("Peak rate over mean rate; the peak is sized for.", 1, 1000,
                          load_default=1.0)  # fmt: skip
    prefix_cache_hit = Number(
        "Share of the input tokens found in the prefix cache.", 0, 1, load_default=0.0
    )
    start = Choice(
        "Of a closed load. `steady`: as it is after a while; `burst`: every client at once, and "
        "the whole run counts, as in a benchmark.",
        STARTS, load_default="steady",
    )  # fmt: skip
    num_requests = Whole(
        "Requests of a burst, `concurrency` or more; null: "
        f"{REQUESTS_A_CLIENT} x `concurrency`.",
        1, MOST_REQUESTS, allow_none=True, load_default=None,
    )  # fmt: skip

    @validates_schema
    def one_load(self, data: dict[str, Any], **_: Any) -> None:
        """Exactly one kind of load."""
        kinds = ("request_rate_per_s", "concurrency", "saturate", "trace")
        given = [kind for kind in kinds if data[kind]]
        if len(given) != 1:
            detail = f"Exactly one kind of load is expected, not {len(given)}."
            wrong = fault(detail, allowed=list(kinds)).messages
            raise ValidationError(dict.fromkeys(given or ["_schema"], wrong))

    @validates_schema
    def lengths_once(self, data: dict[str, Any], **_: Any) -> None:
        """Lengths of all requests, of each class, or those of a trace."""
        lengths = [name for name in _LENGTHS if data[name] is not None]
        if data["trace"] is not None:
            measured = [name for name in ("arrival_cv", "peak_to_mean") if data[name] != 1]
            classes = ["classes"] if data["classes"] is not None else []
            wrong = fault("This is measured of the trace: leave it out.").messages
            _refuse([*lengths, *classes, *measured], wrong)
        elif data["classes"] is not None:
            _refuse(
                lengths, fault("The lengths are those of the classes: leave this out.").messages
            )
        else:
            said = self.fields["input_tokens"].error_messages["required"]
            _refuse([name for name in _LENGTHS if name not in lengths], [said])

    @validates_schema
    def classes_told_apart(self, data: dict[str, Any], **_: Any) -> None:
        """No two classes have one name."""
        names = [one["name"] for one in _named(data["classes"] or [])]
        for number, name in enumerate(names):
            if name in names[:number]:
                wrong = fault("Another class has this name.", given=name).messages
                raise ValidationError({"classes": {number: {"name": wrong}}})

    @validates_schema
    def few_lengths(self, data: dict[str, Any], **_: Any) -> None:
        """No more lengths than can be computed; long histograms are computed in groups."""
        lengths = [one[name] for one in data["classes"] or [] for name in _LENGTHS]
        count = sum(len(length.grouped) for length in lengths)
        if count > MOST_LENGTHS:
            detail = (
                f"The classes have {count} lengths in all, each number, log-normal or value of a "
                f"histogram (up to {MOST_GROUPS} of each)."
            )
            wrong = fault(detail, allowed={"maximum_lengths": MOST_LENGTHS}).messages
            raise ValidationError({"classes": wrong})

    @validates_schema
    def burst_of_a_closed_load(self, data: dict[str, Any], **_: Any) -> None:
        """Only clients can start at once, and only such a run ends after so many requests."""
        clients, count = data["concurrency"], data["num_requests"]
        if data["start"] != "burst":
            if count is not None:
                wrong = fault("Only a burst has a number of requests.", given=count)
                raise ValidationError({"num_requests": wrong.messages})
            return
        if clients is None:
            wrong = fault("Only a closed load, of a concurrency, starts in a burst.", given="burst",
                          allowed=["steady"])  # fmt: skip
            raise ValidationError({"start": wrong.messages})
        if count is None and REQUESTS_A_CLIENT * clients <= MOST_REQUESTS:
            return
        if count is None or count < clients:
            detail = f"At {clients} requests in flight a burst needs a number of requests."
            allowed = {"minimum": clients, "maximum": MOST_REQUESTS}
            wrong = fault(detail, given=count, allowed=allowed)
            raise ValidationError({"num_requests": wrong.messages})

    @post_load
    def as_workload(self, data: dict[str, Any], **_: Any) -> Workload:
        """The core's workload."""
        classes, trace = data.pop("classes"), data["trace"]
        if isinstance(trace, Trace):
            return trace.workload(data["prefix_cache_hit"])
        if classes is None:
            return Workload(**data)
        hit = data.pop("prefix_cache_hit")
        load = {name: value for name, value in data.items() if not name.endswith("put_tokens")}
        return Workload.of_classes((_request_class(one, hit) for one in _named(classes)), **load)


def _refuse(names: Iterable[str], wrong: Any) -> None:
    """These fields, if there are any, for this reason."""
    faults = dict.fromkeys(names, wrong)
    if faults:
        raise ValidationError(faults)


def _named(classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The classes, those without a name named by their place."""
    return [
        one | {"name": one["name"] or f"class-{place}"}
        for place, one in enumerate(classes, start=1)
    ]


def _request_class(one: dict[str, Any], hit: float) -> RequestClass:
    """The core's class; its prefix hit is the workload's unless it has one."""
    own = one["prefix_cache_hit"]
    fields = {name: value for name, value in one.items() if name != "weight"}
    fields["prefix_cache_hit"] = hit if own is None else own
    return RequestClass(share=one["weight"], **fields)


def _degrees(doc: str, default: list[int] | None) -> ListOf:
    degree = Whole("", 1, MOST_DEGREE)
    if default is None:
        return ListOf(degree, doc, fewest=1, most=32, unique=True, allow_none=True,
                      load_default=None)  # fmt: skip
    return ListOf(degree, doc, fewest=1, most=32, unique=True, load_default=default)


class LimitsBody(Closed):
    """Bounds on the search; null leaves the choice to the planner."""

    max_accelerators = Whole("Of one plan.", 1, 4096, load_default=64)
    max_cost_per_hour = Money("In the currency of the prices.", allow_none=True, load_default=None)
    tensor_parallel = _degrees("Degrees to try; null: every valid one.", None)
    pipeline_parallel = _degrees("Degrees to try.", [1])
    expert_parallel = _degrees("Degrees to try; null: 1 and the tensor-parallel degree.", None)
    attention_data_parallel = _degrees("Degrees to try.", [1])
    decode_context_parallel = _degrees(
        "Degrees to try: ranks that would hold the same KV heads share out a sequence's tokens.",
        [1],
    )
    replicas = ListOf(
        Whole("", 1, 4096), "Numbers of replicas to try; null: every one within the limits.",
        fewest=1, most=256, unique=True, allow_none=True, load_default=None,
    )  # fmt: skip
    spare_replicas = Whole("Replicas that may be lost while the SLOs hold.", 0, 1000,
                           load_default=0)  # fmt: skip
    max_utilization = Number("Of saturation.", 1e-2, 1, load_default=0.95)
    min_met_probability = Number(
        "Least `met_probability` of a plan that is recommended, beside meeting every SLO; null: "
        "meeting them is enough.",
        0.5, 0.95, allow_none=True, load_default=None,
    )  # fmt: skip

    @post_load
    def as_limits(self, data: dict[str, Any], **_: Any) -> Limits:
        """The core's limits."""
        limits: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
        }
        return Limits(**limits)


class SpeculativeBody(Closed):
    """Speculative decoding: tokens drafted and verified together in each step."""

    draft_tokens = Whole("Tokens drafted for a sequence in each step.", 1, 64, required=True)
    acceptance_rate = Number(
        "Probability that a drafted token is accepted, if those before it were.", 0, 1,
        required=True,
    )  # fmt: skip
    draft_cost = Number(
        "Time to draft one token, in plain decode steps of the model itself.", 0, 10,
        load_default=0.0,
    )  # fmt: skip

    @post_load
    def as_speculation(self, data: dict[str, Any], **_: Any) -> Speculation:
        """The core's speculation."""
        return Speculation(**data)


class ServingBody(Closed):
    """The engine and its settings; null takes the default of that engine on that device."""

    engine = Choice("Serving engine.", ENGINES, load_default="vllm")
    engine_version = Text("Version whose defaults and memory rules hold; null: the newest known.",
                          40, shortest=1, allow_none=True, load_default=None)  # fmt: skip
    sampler = Choice("What samples tokens: its peak is taken from the KV cache; null: what the "
                     "version takes.", SAMPLERS, allow_none=True, load_default=None)  # fmt: skip
    memory_utilization = Number("Share of the device's memory that the engine may use.", 1e-2, 1,
                                allow_none=True, load_default=None)  # fmt: skip
    max_model_len = Whole("Longest request that the engine admits [tokens]; null: the longest "
                          "of the workload.", 1, MOST_TOKENS,
                          allow_none=True, load_default=None)  # fmt: skip
    max_num_seqs = Whole("Most sequences in a step; null: what the engine takes or, under a closed "
                         "or saturating load, the largest batch whose TPOT is within its SLO.",
                         1, 65_536,
                         allow_none=True, load_default=None)  # fmt: skip
    max_num_batched_tokens = Whole("Most tokens in a step.", 1, 1_048_576,
                                   allow_none=True, load_default=None)  # fmt: skip
    pipeline_layers = ListOf(
        Whole("", 1, 10_000), "Layers of each pipeline stage; null: dealt out evenly.",
        fewest=2, most=MOST_DEGREE, allow_none=True, load_default=None,
    )  # fmt: skip
    router_efficiency = Number("Share of the replicas' capacity that the router reaches.",
                               1e-2, 1, load_default=1.0)  # fmt: skip
    routing = Choice(
        "How an open load's requests find their replica. `random`: as a Kubernetes service deals "
        "them out by default; `least_loaded`: to one with the fewest requests in flight.",
        ROUTINGS, load_default="random",
    )  # fmt: skip

    speculative = Section(
        SpeculativeBody, "Speculative decoding; null: none.", allow_none=True, load_default=None
    )

    @post_load
    def as_serving(self, data: dict[str, Any], **_: Any) -> Serving:
        """The core's serving settings."""
        stages, speculative = data.pop("pipeline_layers"), data.pop("speculative")
        return Serving(
            **data,
            pipeline_layers=None if stages is None else tuple(stages),
            speculative=speculative or NO_SPECULATION,
        )


class PrecisionBody(Closed):
    """Formats to try; left out or empty: the checkpoint's own."""

    weights = ListOf(
        Choice("", WEIGHT_PRECISIONS), "Of the weights.",
        most=len(WEIGHT_PRECISIONS), unique=True, load_default=list,
    )  # fmt: skip
    kv_cache = ListOf(
        Choice("", KV_PRECISIONS), "Of the KV cache.",
        most=len(KV_PRECISIONS), unique=True, load_default=list,
    )  # fmt: skip
