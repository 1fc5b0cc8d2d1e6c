"""Candidates as JSON: rows of the evaluation in the units and names of the contract."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from decimal import ROUND_HALF_EVEN, Context, Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.candidates import Candidates
from advisor.core.class_latency import Latencies
from advisor.core.decision import Verdicts
from advisor.core.enumeration import kv_precisions, weight_precisions
from advisor.core.evaluation import Evaluator, hourly_cost
from advisor.core.layouts import Layout
from advisor.core.lengths import Length, RequestClass
from advisor.core.load import Served
from advisor.core.precision import compute_arithmetic
from advisor.core.slo import attainment, meets_slos
from advisor.core.units import GIB, MS_PER_S
from advisor.core.verification import Simulated
from advisor.core.workload import SLO_KEYS, STATISTICS, PlanRequest, Workload

_COST_DIGITS = Context(prec=6, rounding=ROUND_HALF_EVEN)
"""Costs per token come from predicted rates: six digits, rounded once."""

_SECONDS_PER_HOUR = 3600

Milliseconds = dict[str, dict[str, list[float]]]
"""Latencies by metric, statistic and row [ms]."""


def rounded(value: float) -> float | None:
    """A number with six significant digits; null where it is not defined."""
    value = float(value)  # numpy's own formats in twice the time
    return None if math.isnan(value) else float(f"{value:.6g}")


def money(amount: Decimal) -> str:
    """An amount as a plain decimal string."""
    return format(amount.normalize() if amount else Decimal(0), "f")


class CandidateWriter:
    """Writes candidates of one plan; what many of them need is computed once."""

    def __init__(
        self, request: PlanRequest, evaluator: Evaluator, candidates: Candidates,
        verdicts: Verdicts, simulated: Mapping[int, Simulated],
    ) -> None:  # fmt: skip
        self.request, self.evaluator = request, evaluator
        self.candidates, self.verdicts = candidates, verdicts
        self.simulated = simulated
        self._written: dict[int, dict[str, Any]] = {}

    def one(self, row: int) -> dict[str, Any]:
        """One candidate."""
        if row not in self._written:
            self._written[row] = self._write(row)
        return self._written[row]

    def _write(self, row: int) -> dict[str, Any]:
        index = int(self.candidates.layout[row])
        layout = self.evaluator.layouts[index]
        split, served = layout.split, self.candidates.served
        return {
            "hardware": layout.hardware.name,
            "replicas": int(self.candidates.replicas[row]),
            "tensor_parallel": split.tensor_parallel,
            "pipeline_parallel": split.pipeline_parallel,
            "expert_parallel": split.expert_parallel,
            "attention_data_parallel": split.attention_data_parallel,
            "decode_context_parallel": split.decode_context_parallel,
            "accelerators": int(self.candidates.accelerators[row]),
            "precision": {
                "weights": split.weights,
                "kv_cache": split.kv_cache,
                "compute": compute_arithmetic(split.weights, layout.hardware.dense_tflops),
            },
            "memory": self._memory(index),
            "latency": _latency(self._milliseconds, row),
            "classes": [
                {"name": name, **_latency(latency, row)}
                for name, latency in self._class_milliseconds.items()
            ],
            "throughput": self._throughput(row),
            "load": {
                "verdict": str(served.verdict[row]),
                "utilization": rounded(served.utilization[row]),
                "mean_concurrency": rounded(served.concurrency[row]),
                "concurrency_per_replica": rounded(served.in_service[row]),
                "slot_wait_mean_ms": rounded(served.slot_wait[row] * MS_PER_S),
            },
            "cost": costs(self.request, layout, self.candidates, row),
            "serving": self._serving(index),
            "bottleneck": self._bottleneck(row, index),
            "slo": self._slo(row),
            "confidence": self._confidence(row, index),
            "verification": self._verification(row),
        }

    @cached_property
    def _milliseconds(self) -> Milliseconds:
        return _milliseconds(self.candidates.served.latency)

    @cached_property
    def _class_milliseconds(self) -> dict[str, Milliseconds]:
        classes = self.candidates.served.classes
        return {name: _milliseconds(latency) for name, latency in classes.items()}

    def _memory(self, index: int) -> dict[str, Any]:
        memory, total = self.evaluator.memory, self.evaluator.layouts[index].hardware.memory_gib
        weights, activation = memory.weights[index] / GIB, memory.activation[index] / GIB
        kv_cache = memory.kv_cache[index] / GIB
        return {
            "weights_gib": rounded(weights),
            "activation_gib": rounded(activation),
            "reserve_gib": rounded(total - weights - activation - kv_cache),
            "kv_cache_gib": rounded(kv_cache),
            "kv_cache_gib_range": [
                rounded(max(bound[index], 0.0) / GIB)
                for bound in (memory.kv_cache_low, memory.kv_cache_high)
            ],
            "kv_capacity_tokens": int(memory.capacity_tokens[index]),
            "max_concurrency": int(memory.max_concurrency[index]),
            "reported_kv_tokens": (
                None
                if math.isnan(memory.reported_tokens[index])
                else int(memory.reported_tokens[index])
            ),
            "fit": "uncertain" if memory.uncertain[index] else "fits",
        }

    def _throughput(self, row: int) -> dict[str, Any]:
        served, tokens = self.candidates.served, self.request.workload.output_tokens.mean
        rate = float(served.requests_per_s[row])
        accelerators = int(self.candidates.accelerators[row])
        return {
            "requests_per_s": rounded(rate),
            "output_tokens_per_s": rounded(rate * tokens),
            "output_tokens_per_s_per_accelerator": rounded(rate * tokens / accelerators),
            "saturation_requests_per_s": rounded(served.saturation[row]),
            "saturation_output_tokens_per_s": rounded(served.saturation[row] * tokens),
        }

    def _serving(self, index: int) -> dict[str, Any]:
        settings = self.evaluator.settings[index]
        return {
            "engine": settings.engine,
            "engine_version": settings.version,
            "sampler": settings.sampler,
            "max_model_len": math.ceil(settings.max_model_len),
            "max_num_seqs": settings.max_num_seqs,
            "max_num_batched_tokens": settings.max_num_batched_tokens,
            "memory_utilization": rounded(settings.memory_utilization),
        }

    @cached_property
    def _shares(self) -> dict[str, dict[str, list[float]]]:
        points = self.evaluator.operating_point(self.candidates)
        return {
            phase: {cause: share.tolist() for cause, share in times.shares().items()}
            for phase, times in zip(("decode", "prefill"), points, strict=True)
        }

    @cached_property
    def _prompt_shares(self) -> NDArray[np.float64]:
        return self.evaluator.prompt_share(self.candidates)

    def _bottleneck(self, row: int, index: int) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for phase in ("prefill", "decode"):
            shares = {cause: share[row] for cause, share in self._shares[phase].items()}
            answer[phase] = {
                "kind": max(shares, key=lambda cause: shares[cause]),
                "shares": {cause: rounded(share) for cause, share in shares.items()},
            }
        answer["prefill_time_share"] = rounded(float(self._prompt_shares[row]))
        return answer | {"memory_capacity_used": rounded(self._memory_used(row, index))}

    def _memory_used(self, row: int, index: int) -> float:
        """Share of an accelerator's memory that weights, overheads and live KV fill."""
        memory, total = self.evaluator.memory, self.evaluator.layouts[index].hardware.memory_bytes
        groups = self.evaluator.layouts[index].split.attention_data_parallel
        live = float(self.candidates.served.in_service[row]) / groups * memory.per_sequence[index]
        free = max(float(memory.kv_cache[index] - live), 0.0)
        return (total - free) / total

    def _slo(self, row: int) -> dict[str, Any]:
        verdicts, served = self.verdicts, self.candidates.served
        ratios = {key: float(ratio[row]) for key, ratio in verdicts.ratios.items()}
        share = float(self._attainment[row])
        return {
            "met": bool(verdicts.meets[row]),
            "met_probability": rounded(float(self._met_probability[row])),
            "attainment": rounded(share),
            "goodput_requests_per_s": rounded(share * served.requests_per_s[row]),
            "binding": max(ratios, key=lambda key: ratios[key]) if ratios else None,
        }

    @cached_property
    def _attainment(self) -> NDArray[np.float64]:
        request = self.request
        return attainment(self.candidates.served, request.slo, request.workload)

    @cached_property
    def _met_probability(self) -> NDArray[np.float64]:
        return self.verdicts.met_probability(np.arange(len(self.candidates)))

    def _confidence(self, row: int, index: int) -> dict[str, Any]:
        """Intervals that hold four times of five; under an open load no more is served than comes,
        and less where the saturation is less."""
        served, floor = self.candidates.served, self._floors[index]
        known = self.evaluator.regimes[index]
        rate = float(served.requests_per_s[row])
        low, high = known.width("throughput").around(rate)
        if self.request.workload.mode == "open":
            least, _ = known.width("throughput").around(float(served.saturation[row]))
            low, high = min(rate, least), rate
        tokens = self.request.workload.output_tokens.mean
        intervals = {
            f"{name}_ms": known.width(name).around(float(served.latency[name].mean[row]), least)
            for name, least in (("tpot", floor), ("ttft", 0.0))
        }
        return {
            "regime": known.name,
            "basis": known.basis,
            **{
                name: None if math.isnan(ends[0]) else [rounded(x * MS_PER_S) for x in ends]
                for name, ends in intervals.items()
            },
            "output_tokens_per_s": [rounded(x * tokens) for x in (low, high)],
        }

    @cached_property
    def _floors(self) -> list[float]:
        """The least time of a decode step of one sequence on each layout [s]."""
        one, context = np.ones((1, 1)), np.full((1, 1), self.request.workload.live_context)
        floors: list[float] = self.evaluator.steps.floor(one, context)[:, 0].tolist()
        return floors

    def _verification(self, row: int) -> dict[str, Any] | None:
        """What a simulation of the candidate measured, beside the closed form."""
        if row not in self.simulated:
            return None
        found, workload = self.simulated[row], self.request.workload
        closed_form = self.candidates.served
        answer: dict[str, Any] = {"requests": found.requests, "reason": found.reason}
        if found.served is None:
            empty = ("preemptions_per_request", "latency", "throughput", "agreement", "slo_met")
            return answer | dict.fromkeys(empty) | {"classes": []}
        served = found.served
        rate = float(served.requests_per_s[0])
        preemptions = found.preemptions
        return answer | {
            "preemptions_per_request": None if preemptions is None else rounded(preemptions),
            "latency": _latency(_milliseconds(served.latency), 0),
            "classes": [
                {
                    "name": name,
                    **_latency(_milliseconds(latency), 0),
                    "agreement": _agreement(closed_form.classes[name], row, latency),
                }
                for name, latency in served.classes.items()
            ],
            "throughput": {
                "output_tokens_per_s": rounded(rate * workload.output_tokens.mean),
                "requests_per_s": rounded(rate),
            },
            "agreement": agreement(closed_form, row, served),
            "slo_met": bool(meets_slos(served, self.request.slo, workload.gaps)[0]),
        }


def costs(request: PlanRequest, layout: Layout, rows: Candidates, row: int) -> dict[str, Any]:
    """What a plan costs by the hour, and by what it serves."""
    hourly = hourly_cost(layout, int(rows.accelerators[row]))
    empty = dict.fromkeys(("per_million_output_tokens", "per_million_total_tokens", "per_request"))
    if hourly is None or layout.hardware.price is None:
        return {"per_hour": None, **empty, "currency": None, "price_as_of": None}
    price = layout.hardware.price
    answer = {"per_hour": money(hourly), **empty, "currency": price.currency}
    answer["price_as_of"] = None if price.as_of is None else price.as_of.isoformat()
    if rows.served.verdict[row] == "unstable":
        return answer
    workload, rate = request.workload, rows.served.requests_per_s[row]
    if workload.request_rate_per_s is not None:  # bills run at the mean rate, not at the peak
        rate = min(rate, workload.request_rate_per_s)
    requests = Decimal(repr(float(rate * _SECONDS_PER_HOUR)))
    output = workload.output_tokens.mean
    per = {
        "per_million_output_tokens": output / 1e6,
        "per_million_total_tokens": (output + workload.input_tokens.mean) / 1e6,
        "per_request": 1.0,
    }
    return answer | {
        key: money(_COST_DIGITS.divide(hourly, requests * Decimal(repr(units))))
        for key, units in per.items()
    }


def agreement(closed_form: Served, row: int, simulated: Served) -> dict[str, Any]:
    """A row of the closed form over the same plan simulated, figure by figure."""
    rates = closed_form.requests_per_s[row], simulated.requests_per_s[0]
    return {
        **_agreement(closed_form.latency, row, simulated.latency),
        "throughput": rounded(rates[0] / rates[1]),
    }


def _agreement(closed_form: Latencies, row: int, simulated: Latencies) -> dict[str, Any]:
    return {
        metric: {s: rounded(value.at(s)[row] / simulated[metric].at(s)[0]) for s in STATISTICS}
        for metric, value in closed_form.items()
    }


def _milliseconds(latency: Latencies) -> Milliseconds:
    return {
        f"{metric}_ms": {s: (value.at(s) * MS_PER_S).tolist() for s in STATISTICS}
        for metric, value in latency.items()
    }


def _latency(milliseconds: Milliseconds, row: int) -> dict[str, Any]:
    return {
        metric: {statistic: rounded(value[row]) for statistic, value in each.items()}
        for metric, each in milliseconds.items()
    }


def inputs(request: PlanRequest) -> dict[str, Any]:
    """The request with every default filled in."""
    workload, limits, serving = request.workload, request.limits, request.serving
    cost_limit, drafts = limits.max_cost_per_hour, serving.speculative
    return {
        "model": request.model.name,
        "hardware": [device.name for device in request.hardware],
        "workload": _asked(workload),
        "slo": {key: limit_ms for key, limit_ms in request.slo.items() if key in SLO_KEYS},
        "objective": request.objective,
        "precision": {
            "weights": list(weight_precisions(request)),
            "kv_cache": list(kv_precisions(request)),
        },
        "limits": {
            "max_accelerators": limits.max_accelerators,
            "max_cost_per_hour": None if cost_limit is None else money(cost_limit),
            "tensor_parallel": _degrees(limits.tensor_parallel),
            "pipeline_parallel": _degrees(limits.pipeline_parallel),
            "expert_parallel": _degrees(limits.expert_parallel),
            "attention_data_parallel": _degrees(limits.attention_data_parallel),
            "decode_context_parallel": _degrees(limits.decode_context_parallel),
            "replicas": _degrees(limits.replicas),
            "spare_replicas": limits.spare_replicas,
            "max_utilization": limits.max_utilization,
            "min_met_probability": limits.min_met_probability,
        },
        "serving": {
            "engine": serving.engine,
            "engine_version": serving.engine_version,
            "sampler": serving.sampler,
            "max_model_len": serving.max_model_len,
            "memory_utilization": serving.memory_utilization,
            "max_num_seqs": serving.max_num_seqs,
            "max_num_batched_tokens": serving.max_num_batched_tokens,
            "pipeline_layers": _degrees(serving.pipeline_layers),
            "router_efficiency": serving.router_efficiency,
            "routing": serving.routing,
            "speculative": asdict(drafts) if drafts.draft_tokens else None,
        },
        "max_candidates": request.max_candidates,
        "verify": request.verify,
        "explain": request.explain,
    }


def _asked(workload: Workload) -> dict[str, Any]:
    """The load as a request has it; of a trace, what is measured of it is left to it."""
    classes = workload.classes
    asked = {
        "request_rate_per_s": workload.request_rate_per_s,
        "concurrency": workload.concurrency,
        "saturate": workload.saturate,
        "trace": None,
        "input_tokens": None if classes else _length(workload.input_tokens),
        "output_tokens": None if classes else _length(workload.output_tokens),
        "classes": [_class(one) for one in classes] or None,
        "arrival_cv": workload.arrival_cv,
        "peak_to_mean": workload.peak_to_mean,
        "prefix_cache_hit": workload.prefix_cache_hit,
        "start": workload.start,
        "num_requests": workload.burst_requests or None,
    }
    if workload.trace is not None:
        measured = ("request_rate_per_s", "input_tokens", "output_tokens")
        asked |= dict.fromkeys(measured) | {"arrival_cv": 1.0, "peak_to_mean": 1.0}
        asked["trace"] = workload.trace.as_dict()
    return asked


def measured_trace(workload: Workload) -> dict[str, Any] | None:
    """What was measured of a trace and taken for the steady load of the closed form."""
    if workload.trace is None:
        return None
    return {
        "requests": len(workload.trace),
        "duration_s": rounded(workload.trace.duration_s),
        "request_rate_per_s": rounded(workload.trace.rate_per_s),
        "arrival_cv": rounded(workload.arrival_cv),
        "peak_to_mean": rounded(workload.peak_to_mean),
        "input_tokens": _length(workload.input_tokens, rounded),
        "output_tokens": _length(workload.output_tokens, rounded),
    }


def _length(length: Length, written: Callable[[float], Any] = float) -> Any:
    if length.mixture:
        return {
            "values": [written(one.mean) for one in length.mixture],
            "weights": [one.share for one in length.mixture],
        }
    mean = written(length.mean)
    return mean if length.p95 is None else {"mean": mean, "p95": written(length.p95)}


def _class(one: RequestClass) -> dict[str, Any]:
    return {
        "name": one.name,
        "weight": one.share,
        "input_tokens": _length(one.input_tokens),
        "output_tokens": _length(one.output_tokens),
        "prefix_cache_hit": one.prefix_cache_hit,
        "slo": dict(one.slo),
    }


def _degrees(degrees: tuple[int, ...] | None) -> list[int] | None:
    return None if degrees is None else list(degrees)
