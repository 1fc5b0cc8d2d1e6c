"""Core time of a plan and its answer: of random requests, one device, the whole catalogue, and how
it grows with the number of layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log
from typing import Any

import numpy as np

from advisor.catalog.loader import hardware_documents, model_documents, model_profile
from advisor.core.errors import InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.plans import plan
from advisor.core.workload import OBJECTIVES, Length, Limits, PlanRequest, Workload
from benchmarks.timing import least_cpu_ms

RANDOM, SEED = 1000, 1
DEVICES = (
    "h200-sxm-141gb", "h100-sxm-80gb", "b200", "b300",
    "a100-sxm-80gb", "mi300x", "mi325x", "l40s",
)  # fmt: skip
TENSOR_PARALLEL = (1, 2, 4, 8, 16, 32)
PRECISIONS = ("bf16", "fp8", "int4_awq")
LENGTHS = Length(1000), Length(250)
LOADS = {
    "4 requests/s": Workload(*LENGTHS, request_rate_per_s=4),
    "4 requests/s in bursts": Workload(*LENGTHS, request_rate_per_s=4, arrival_cv=2),
    "64 clients, batch by SLO": Workload(*LENGTHS, concurrency=64),
}


def main() -> None:
    """Print milliseconds, and ratios to the smallest request of the last table."""
    hardware = [HardwareProfile.from_mapping(each) for each in hardware_documents()]
    by_name = {device.name: device for device in hardware}
    models = [ModelProfile.from_mapping(each) for each in model_documents()]
    llama = model_profile("meta-llama-3.1-70b")
    devices = [by_name[name] for name in DEVICES]

    print("Core time of one plan and its answer (least CPU)")
    spent = [_spent(ask, 3) for ask in random_requests(models, hardware)]
    middle, most = np.quantile(spent, [0.5, 0.99])
    print(f"  {RANDOM} random requests: p50 {middle:.1f} ms, p99 {most:.1f} ms")
    for name, load in LOADS.items():
        one, every = (_spent(request(llama, of, load), 15) for of in (devices[:1], hardware))
        print(
            f"  {name:24}: {DEVICES[0]}, every TP, {one:6.1f} ms; all {len(hardware)} devices "
            f"{every:6.1f} ms, {every / one:4.1f} times"
        )
    print("  growth with layouts asked for (devices x TP x precisions)")
    base = None
    for count, precisions in ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 3)):
        ask = request(
            llama, devices[:count], LOADS["4 requests/s"], weights=PRECISIONS[:precisions],
            kv_cache=("fp8",), limits=Limits(tensor_parallel=TENSOR_PARALLEL),
        )  # fmt: skip
        took = _spent(ask, 15)
        base = base or took
        layouts = count * precisions * len(TENSOR_PARALLEL)
        print(
            f"    {count} x {len(TENSOR_PARALLEL)} x {precisions} = {layouts:3d}: {took:6.1f} ms, "
            f"{took / base:4.1f} times the smallest, {took / layouts:.2f} ms each"
        )


def request(
    model: ModelProfile, devices: Sequence[HardwareProfile], load: Workload, **fields: Any
) -> PlanRequest:
    """Every TP and every number of replicas up to 64 accelerators."""
    slo = {"ttft_p95_ms": 1000.0, "tpot_p95_ms": 50.0}
    return PlanRequest(model, tuple(devices), load, slo, "latency", **fields)


def random_requests(
    models: Sequence[ModelProfile], devices: Sequence[HardwareProfile]
) -> Iterator[PlanRequest]:
    """The same in every run: any model on one to four devices, every TP and number of replicas;
    inputs of 50 to 8,000 tokens, outputs of 10 to 1,500, half of them spread; three of four loads
    open, of regular to bursty arrivals. What a model refuses is drawn again."""
    random, drawn = np.random.default_rng(SEED), 0

    def between(low: float, high: float) -> float:
        return exp(random.uniform(log(low), log(high)))

    def length(low: float, high: float, most_spread: float) -> Length:
        mean, spread = float(round(between(low, high))), random.uniform(1.2, most_spread)
        return Length(mean, mean * spread if random.random() < 0.5 else None)

    while drawn < RANDOM:
        loads: list[dict[str, Any]] = [
            {"request_rate_per_s": between(0.05, 100)},
            {"concurrency": round(between(1, 1000))},
            {"saturate": True},
        ]
        ask = PlanRequest(
            models[int(random.integers(len(models)))],
            tuple(devices[i] for i in random.permutation(len(devices))[: random.integers(1, 5)]),
            Workload(
                length(50, 8000, 2.5),
                length(10, 1500, 3),
                arrival_cv=float(random.choice([1, 1, 1, 0.5, 2])),
                **loads[random.choice(3, p=[0.75, 0.2, 0.05])],
            ),
            {"ttft_p95_ms": between(200, 5000), "tpot_p95_ms": between(15, 100)},
            str(random.choice(OBJECTIVES)),
        )
        try:
            plan(ask)
        except InvalidInput:
            continue
        drawn += 1
        yield ask


def _spent(ask: PlanRequest, rounds: int) -> float:
    return least_cpu_ms(lambda: plan(ask).as_dict(), rounds)


if __name__ == "__main__":
    main()
