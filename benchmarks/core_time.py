"""Core time of one plan, and how it grows with the number of layouts."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.catalog.loader import hardware_profile, model_profile
from advisor.core.plans import plan
from advisor.core.workload import Length, Limits, PlanRequest, Workload
from benchmarks.timing import least_cpu_ms

DEVICES = (
    "h100-sxm-80gb", "h200-sxm-141gb", "b200", "b300",
    "a100-sxm-80gb", "mi300x", "mi325x", "l40s",
)  # fmt: skip
TENSOR_PARALLEL = (1, 2, 4, 8, 16, 32)
PRECISIONS = ("bf16", "fp8", "int4_awq")


def request(
    devices: Sequence[str], precisions: Sequence[str], degrees: Sequence[int]
) -> PlanRequest:
    """Llama-3.1-70B at 4 requests/s, every number of replicas up to 64 accelerators."""
    return PlanRequest(
        model=model_profile("meta-llama-3.1-70b"),
        hardware=tuple(hardware_profile(name) for name in devices),
        workload=Workload(Length(1000), Length(250), request_rate_per_s=4),
        slo={"ttft_p95_ms": 1000, "tpot_p95_ms": 50},
        objective="latency",
        weights=tuple(precisions),
        kv_cache=("fp8",),
        limits=Limits(tensor_parallel=tuple(degrees)),
    )


def main() -> None:
    """Print milliseconds and the ratio to the smallest request."""
    print("Core time of one plan (least CPU of 15; layouts asked for = devices x TP x precisions)")
    base = None
    for devices, precisions in ((1, 1), (2, 1), (4, 1), (8, 1), (8, 2), (8, 3)):
        ask = request(DEVICES[:devices], PRECISIONS[:precisions], TENSOR_PARALLEL)
        spent = least_cpu_ms(lambda ask=ask: plan(ask).as_dict(), 15)  # type: ignore[misc]
        base = base or spent
        layouts = devices * precisions * len(TENSOR_PARALLEL)
        print(
            f"  {devices} devices x {len(TENSOR_PARALLEL)} TP x {precisions} precisions: "
            f"{layouts:4d} layouts {spent:7.2f} ms, {spent / base:5.2f} times the smallest"
        )


if __name__ == "__main__":
    main()
