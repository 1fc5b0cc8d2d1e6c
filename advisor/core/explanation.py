"""The plan in words: what was chosen and why, what binds, what was assumed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from advisor.core.binding import what_binds
from advisor.core.decision import Decision
from advisor.core.engines import default_version
from advisor.core.evaluation import hourly_cost
from advisor.core.hardware import HardwareProfile
from advisor.core.misses import misses
from advisor.core.slo import slo_ratios
from advisor.core.units import MS_PER_S, plain, rounded_plain
from advisor.core.verification import MOST_SIMULATED, Simulated
from advisor.core.workload import BURSTIEST_MODELLED, Serving, Workload

BOUND_NAMES = {
    "compute": "compute-bound",
    "memory_bandwidth": "bandwidth-bound",
    "interconnect": "interconnect-bound",
    "overhead": "overhead-bound",
}
"""What a phase is called whose time goes to each cause."""

DISAGREEMENT = 1.2
"""Closed form and simulation are said to differ where one is more than this times the other."""

FULL = 0.005
"""Share of requests that find a full KV cache from which preemption is warned of: below it, mean
TPOT was within 8 % of the simulator's, and TTFT but in one of 70 loads, within 10 %."""

ROOMY = 0.95
"""Share of the requests that the KV cache holds at their mean context, at which it hardly fills."""

FITTED = 1.5
"""Lengths of a trace are said to be no log-normal's where these vary so many times as much or as
little."""

_ROUTINGS = {
    "random": "Requests go to replicas at random, as a Kubernetes service deals them out; "
    "percentiles assume independent arrivals.",
    "least_loaded": "Each request goes to a replica with the fewest requests in flight, which the "
    "router knows at any moment; percentiles assume independent arrivals.",
}

_OBJECTIVES = {
    "latency": "least p95 end-to-end latency, while another replica gains 1 % or more",
    "cost": "cheapest plan that meets every SLO",
    "throughput": "most output tokens per second and accelerator at saturation, within the SLOs",
    "balanced": "knee of the Pareto front of p95 end-to-end latency against hourly cost",
}


def explain(plan: Decision) -> list[str]:
    """Sentences on the choice, for a person to read; every figure is in the answer too."""
    subject = plan.recommended
    if subject is None:
        return [refusal(plan) or ""]
    return [
        f"Objective {plan.request.objective}: {_OBJECTIVES[plan.request.objective]}.",
        f"Recommended: {describe(plan, subject)}.",
        *_latencies(plan, subject),
        _bottleneck(plan, subject),
        *_slots(plan, subject),
        *_binding(plan, subject),
        *what_binds(plan, subject),
    ]


def describe(plan: Decision, row: int) -> str:
    """One candidate in words."""
    layout = plan.evaluator.layouts[plan.candidates.layout[row]]
    split, replicas = layout.split, int(plan.candidates.replicas[row])
    accelerators = int(plan.candidates.accelerators[row])
    stages = f" x PP{split.pipeline_parallel}" if split.pipeline_parallel > 1 else ""
    experts = f", EP{split.expert_parallel}" if split.expert_parallel > 1 else ""
    context = split.decode_context_parallel
    experts += f", DCP{context}" if context > 1 else ""
    cost = hourly_cost(layout, accelerators)
    offer = layout.hardware.price
    price = f"{cost:f} {offer.currency}/h" if cost is not None and offer else "no price known"
    plural = "s" if replicas > 1 else ""
    return (
        f"{replicas} replica{plural} x TP{split.tensor_parallel}{stages}{experts} on "
        f"{accelerators} x {layout.hardware.name}, {split.weights} weights, "
        f"{split.kv_cache} KV cache, {price}"
    )


def refusal(plan: Decision) -> str | None:
    """Why nothing is recommended, and by how much the nearest plan misses; None when one is."""
    if plan.recommended is not None:
        return None
    if plan.nearest is None:
        codes = sorted({one.code for one in plan.rejected})
        return f"No layout can serve this ({', '.join(codes)}): rejected names what would work."
    nearest = describe(plan, plan.nearest)
    why = misses(plan, plan.candidates, plan.verdicts, plan.nearest)
    return f"No plan meets every limit. Nearest: {nearest}; {why}."


def _serving(plan: Decision, row: int) -> int:
    return int(plan.candidates.replicas[row]) - plan.request.limits.spare_replicas


def _latencies(plan: Decision, row: int) -> list[str]:
    latency = plan.candidates.served.latency
    parts = []
    for metric in ("ttft", "tpot", "itl", "e2e"):
        value = latency[metric].at("p95")[row] * MS_PER_S
        if not np.isnan(value):
            parts.append(f"{metric.upper()} {rounded_plain(value)} ms")
    return [f"At p95: {', '.join(parts)}."] if parts else []


def _bottleneck(plan: Decision, row: int) -> str:
    one = plan.candidates.take(np.array([row]))
    decode, prefill = plan.evaluator.operating_point(one)
    words = []
    for phase, times in (("Decode", decode), ("prefill", prefill)):
        shares = {cause: float(share[0]) for cause, share in times.shares().items()}
        cause = max(shares, key=lambda c: shares[c])
        words.append(f"{phase} is {BOUND_NAMES[cause]} ({shares[cause]:.0%} of the step)")
    return f"{' and '.join(words)}."


def _slots(plan: Decision, row: int) -> list[str]:
    index = int(plan.candidates.layout[row])
    settings = plan.evaluator.settings[index]
    groups = plan.evaluator.layouts[index].split.attention_data_parallel
    slots = int(plan.evaluator.slots[index])
    if _limited_by_memory(plan, row):
        return [
            f"Concurrency is capacity-bound: the KV cache holds {slots} requests of this length a "
            f"replica, fewer than the engine's limit of {settings.max_num_seqs * groups}."
        ]
    if settings.max_num_seqs_by_slo:
        return [
            f"Concurrency is kept to max_num_seqs {settings.max_num_seqs}, the largest batch whose "
            "TPOT is within its SLO: more requests wait for a place instead of slowing the others."
        ]
    return [f"Concurrency is limited by max_num_seqs: {slots} a replica."]


def _binding(plan: Decision, row: int) -> list[str]:
    ratios = {key: float(ratio[row]) for key, ratio in plan.verdicts.ratios.items()}
    if not ratios:
        return ["No SLO was given."]
    key = max(ratios, key=lambda k: ratios[k])
    return [
        f"The tightest SLO is {key}, at {ratios[key]:.0%} of its {plain(plan.request.slo[key])} ms."
    ]


def assumptions(plan: Decision) -> list[dict[str, str]]:
    """What the figures rest on."""
    request, serving = plan.request, plan.request.serving
    workload = request.workload
    version = serving.engine_version or default_version(serving.engine)
    stated = {
        "engine": f"{serving.engine} {version}: continuous batching with chunked prefill.",
        "step_times": "Step times are a roofline with efficiencies fitted on public benchmarks, by "
        "engine, arithmetic and accelerator generation; confidence says how far off they lay.",
    }
    if serving.max_model_len is None:
        stated["longest_request"] = (
            f"The engine admits requests of up to {plain(workload.longest)} tokens, the longest "
            "planned for: start it with that max_model_len."
        )
    drafts = serving.speculative
    if drafts.draft_tokens:
        stated["speculation"] = (
            f"Each step verifies {drafts.draft_tokens} drafted tokens and gains "
            f"{rounded_plain(drafts.tokens_per_step)} a sequence, which come together. The memory "
            "of a draft model is not counted."
        )
    if workload.mode == "open":
        stated |= _open_load(workload, serving)
    if workload.start == "burst":
        stated["burst"] = (
            f"Simulated, from a fixed seed: {workload.burst_requests} requests, the first "
            f"{workload.concurrency} at once, ramp-up and drain included, each client at one "
            f"replica. The closed form of the steady loop said which {len(plan.candidates)} plans "
            f"(at most {MOST_SIMULATED}) to simulate; the choice is among these."
        )
    elif request.verify and workload.trace is None:
        stated["verification"] = (
            "verification is a simulation from a fixed seed, iteration by iteration, with the same "
            "step times: it checks the queueing, not these."
        )
    if request.verify and workload.start == "burst":
        stated["verified_burst"] = "The figures of a burst are simulated: verify adds nothing."
    if workload.peak_to_mean != 1:
        stated["peak_rate"] = (
            "Latency and utilization are at the peak rate, cost per token at the mean rate."
        )
    if workload.prefix_cache_hit:
        whose = "each class shares" if workload.classes else "all requests share"
        stated["shared_prefix"] = f"The cached part of the input is one prefix that {whose}."
    if request.model.architecture.moe:
        stated["uniform_experts"] = (
            "Tokens choose experts uniformly: as many are read as any routing reads."
        )
    return [_message(code, detail) for code, detail in stated.items()]


def _open_load(workload: Workload, serving: Serving) -> dict[str, str]:
    stated = {"routing": _ROUTINGS[serving.routing]}
    if workload.trace is not None:
        stated["trace"] = (
            "The closed form takes the trace for a steady load of its mean rate, its variation "
            "between arrivals within each tenth of the time, its fullest tenth as the peak, and "
            "log-normal lengths of its means and p95: these rank the plans. verification is the "
            "trace itself, replayed over all replicas from an empty start to its last answer."
        )
    return stated


def warnings(plan: Decision) -> list[dict[str, str]]:
    """What should make a reader careful."""
    found = []
    for device in _devices(plan):
        if device.price is None:
            found.append(_message("no_price", f"{device.name} has no price: its costs are null."))
        elif device.price.as_of is None:
            found.append(_message("undated_price", f"The price of {device.name} has no date."))
    subject = plan.recommended if plan.recommended is not None else plan.nearest
    if subject is not None and plan.evaluator.memory.uncertain[plan.candidates.layout[subject]]:
        found.append(
            _message(
                "uncertain_fit",
                "The plan fits by less than the error of the memory estimate "
                "(kv_cache_gib_range): start the engine once before buying.",
            )
        )
    if subject is not None:
        found += _lowered_default(plan, subject) + _preemption(plan, subject)
    variation = plan.request.workload.arrival_cv
    if plan.request.workload.mode == "open" and variation > BURSTIEST_MODELLED:
        detail = (
            f"Arrivals as bursty as arrival_cv {plain(variation)} are beyond what latencies were "
            f"checked for ({plain(BURSTIEST_MODELLED)}): set verify to simulate the best plans."
        )
        found.append(_message("bursts_beyond_model", detail))
    found += _answers_in_step(plan, subject) + _lengths_not_fitted(plan.request.workload)
    if plan.request.workload.mode == "saturated":
        found.append(
            _message("ttft_undefined", "At saturation the queue has no end: TTFT and E2E are null.")
        )
    if "unstable" in plan.candidates.served.verdict:
        found.append(
            _message(
                "unstable_candidates", "Unstable plans have no finite latency: theirs is null."
            )
        )
    return found


def _preemption(plan: Decision, row: int) -> list[dict[str, str]]:
    if not _limited_by_memory(plan, row) or plan.candidates.served.full[row] < FULL:
        return []
    full, workload = float(plan.candidates.served.full[row]), plan.request.workload
    most = workload.output_tokens.mean / max(workload.new_input_tokens, 1.0)
    index = int(plan.candidates.layout[row])
    groups = plan.evaluator.layouts[index].split.attention_data_parallel
    fewer = max(int(ROOMY * plan.evaluator.memory.max_concurrency[index]) // groups, 1)
    detail = (
        f"{rounded_plain(100 * full)} % of the requests find the KV cache full: those admitted "
        f"last lose their place to the growing context of others and are computed anew, up to "
        f"{rounded_plain(most)} times each. That is not in the figures: simulated, a full replica "
        "serves up to a sixth less than said, and waits near saturation are several times as long. "
        f"Ask with max_num_seqs {fewer}, at which hardly any is, or set verify."
    )
    return [_message("preemption_likely", detail)]


def _limited_by_memory(plan: Decision, row: int) -> bool:
    """Whether the KV cache holds fewer requests than the engine would run."""
    index, evaluator = int(plan.candidates.layout[row]), plan.evaluator
    groups = evaluator.layouts[index].split.attention_data_parallel
    most = evaluator.settings[index].max_num_seqs * groups
    return bool(evaluator.memory.max_concurrency[index] < most)


def _lengths_not_fitted(workload: Workload) -> list[dict[str, str]]:
    trace, found = workload.trace, []
    fits = (("input", workload.input_tokens), ("output", workload.output_tokens)) if trace else ()
    for name, fitted in fits:
        tokens = np.array(getattr(trace, f"{name}_tokens"), dtype=np.float64)
        true, taken = tokens.std() / tokens.mean(), math.sqrt(fitted.squared_cv)
        if not max(true, taken) <= FITTED * min(true, taken):
            detail = (
                f"The {name} lengths of the trace vary by {rounded_plain(true)} times their mean, "
                f"the log-normal of their mean and p95 by {rounded_plain(taken)}: go by the replay."
            )
            found.append(_message("trace_lengths_not_log_normal", detail))
    return found


def _answers_in_step(plan: Decision, row: int | None) -> list[dict[str, str]]:
    workload = plan.request.workload
    levelled = workload.mode == "open" and plan.request.serving.routing == "least_loaded"
    if not levelled or workload.output_tokens.squared_cv or row is None or _serving(plan, row) == 1:
        return []
    detail = (
        "Answers all of one length: those that began together end together and draw as many new "
        "requests to their replica at once. Simulated for thousands of requests a replica, p95 "
        "TTFT grew to two or three times what is said here, of which the short runs of verify show "
        "the beginning: give output_tokens a p95, or route at random."
    )
    return [_message("answers_end_in_step", detail)]


def _lowered_default(plan: Decision, row: int) -> list[dict[str, str]]:
    settings = plan.evaluator.settings[int(plan.candidates.layout[row])]
    if not settings.max_num_seqs_lowered:
        return []
    detail = (
        f"The memory holds {settings.max_num_seqs} blocks of recurrent state, fewer than the "
        f"default max_num_seqs of {settings.engine} {settings.version}, with which it would not "
        f"start: start it with max_num_seqs {settings.max_num_seqs}."
    )
    return [_message("default_max_num_seqs_lowered", detail)]


def disagreements(plan: Decision, simulated: Mapping[int, Simulated]) -> list[dict[str, str]]:
    """Where a simulation differs from the closed form in what an SLO names, or misses one. A trace
    is replayed over its whole time, and what is computed at its peak is to differ."""
    found, request = [], plan.request
    at_peak = request.workload.trace is not None and request.workload.peak_to_mean != 1
    for row, one in simulated.items():
        if one.served is None:
            continue
        measured = slo_ratios(one.served, request.slo, request.workload.gaps)
        for key, limit_ms in request.slo.items():
            closed, true = float(plan.verdicts.ratios[key][row]), float(measured[key][0])
            text = (
                f"{describe(plan, row)}: {key} is {rounded_plain(true * limit_ms)} ms in the "
                f"simulation and {rounded_plain(closed * limit_ms)} ms in the closed form"
            )
            if closed <= 1 < true:
                detail = f"{text}: the simulation misses the limit of {plain(limit_ms)} ms."
                found.append(_message("simulation_misses_slo", detail))
            elif not at_peak and not max(closed, true) <= DISAGREEMENT * min(closed, true):
                found.append(_message("simulation_differs", f"{text}."))
    return found


def _devices(plan: Decision) -> list[HardwareProfile]:
    return list({device.name: device for device in plan.request.hardware}.values())


def _message(code: str, detail: str) -> dict[str, str]:
    return {"code": code, "detail": detail}
