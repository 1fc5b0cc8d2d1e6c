"""The fields of the forms: what each is called, and where in a request its value stands.

Bounds and meanings are the schemas' own: a field here has no rule of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "numbers", "text", "name", "names", "choice", "json", "long"]


@dataclass(frozen=True)
class Field:
    """One field of a form. Its value is text, or a list of texts where `kind` is `names`.

    `pointer` says where in the request the value stands; `choices` are pairs of value and label;
    `only_for` is the value of the form's `load` field with which it counts.
    """

    name: str
    label: str
    pointer: str
    kind: Kind
    unit: str = ""
    default: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    source: Literal["", "models", "hardware"] = ""
    hint: str = ""
    only_for: str = ""

    @property
    def many(self) -> bool:
        """Whether the value is a list of texts."""
        return self.kind == "names"


@dataclass(frozen=True)
class Group:
    """Fields under one heading; one that is not `open` is folded until it is needed."""

    title: str
    fields: tuple[Field, ...]
    open: bool = True


def _alike(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple((value, value) for value in values)


_LOADS = (
    ("request_rate_per_s", "Requests arrive at a rate"),
    ("concurrency", "A fixed number of requests in flight"),
    ("saturate", "As much as is served"),
)

PLAN = (
    Group(
        "Model and accelerators",
        (
            Field("model", "Model", "/model", "name", source="models",
                  default="meta-llama-3.1-70b"),
            Field("hf_config", "or its config.json", "/model/hf_config", "json",
                  hint="Paste the file from the model's repository. It is used in place of the "
                  "model above."),
            Field("hardware", "Accelerators to compare", "/hardware", "names", source="hardware",
                  default="h100-sxm-80gb,h200-sxm-141gb"),
        ),
    ),
    Group(
        "Load",
        (
            Field("load", "Kind of load", "/workload", "choice", choices=_LOADS,
                  default="request_rate_per_s"),
            Field("request_rate_per_s", "Rate", "/workload/request_rate_per_s", "number",
                  unit="requests/s", default="4", only_for="request_rate_per_s"),
            Field("concurrency", "In flight", "/workload/concurrency", "number",
                  unit="requests", default="32", only_for="concurrency"),
            Field("prefix_cache_hit", "Cache hits", "/workload/prefix_cache_hit",
                  "number", unit="share"),
            Field("input_tokens", "Input, mean", "/workload/input_tokens/mean", "number",
                  unit="tokens", default="1000"),
            Field("input_tokens_p95", "Input, p95", "/workload/input_tokens/p95", "number",
                  unit="tokens"),
            Field("output_tokens", "Output, mean", "/workload/output_tokens/mean", "number",
                  unit="tokens", default="250"),
            Field("output_tokens_p95", "Output, p95", "/workload/output_tokens/p95", "number",
                  unit="tokens"),
        ),
    ),
    Group(
        "Latency bounds",
        (
            Field("ttft_p95_ms", "First token, TTFT p95", "/slo/ttft_p95_ms", "number",
                  unit="ms", default="1000"),
            Field("tpot_p95_ms", "Each token, TPOT p95", "/slo/tpot_p95_ms",
                  "number", unit="ms", default="50"),
            Field("itl_p95_ms", "Gap, ITL p95", "/slo/itl_p95_ms", "number",
                  unit="ms"),
            Field("e2e_p95_ms", "Whole answer, E2E p95", "/slo/e2e_p95_ms", "number",
                  unit="ms"),
        ),
    ),
    Group(
        "Objective and precision",
        (
            Field("objective", "Objective", "/objective", "choice", default="cost",
                  choices=(("cost", "Lowest cost"), ("latency", "Lowest latency"),
                           ("throughput", "Most tokens per accelerator"),
                           ("balanced", "Between cost and latency"))),
            Field("weights", "Weights", "/precision/weights", "names",
                  choices=_alike("fp32", "bf16", "fp16", "fp8", "fp8_block", "int8", "int4_awq",
                                 "int4_gptq", "mxfp4", "nvfp4"),
                  hint="Empty: as the checkpoint has them."),
            Field("kv_cache", "KV cache", "/precision/kv_cache", "names",
                  choices=_alike("bf16", "fp16", "fp8", "int8"),
                  hint="Empty: as the checkpoint has it."),
        ),
    ),
    Group(
        "Limits and engine",
        (
            Field("max_accelerators", "Most accelerators", "/limits/max_accelerators", "number"),
            Field("max_cost_per_hour", "Most cost per hour", "/limits/max_cost_per_hour", "text"),
            Field("tensor_parallel", "Tensor-parallel degrees to try", "/limits/tensor_parallel",
                  "numbers", hint="Numbers with commas between. Empty: every valid one."),
            Field("replicas", "Numbers of replicas to try", "/limits/replicas", "numbers",
                  hint="Numbers with commas between. Empty: every one."),
            Field("spare_replicas", "Replicas that may be lost", "/limits/spare_replicas",
                  "number"),
            Field("engine", "Engine", "/serving/engine", "choice", default="vllm",
                  choices=_alike("vllm", "sglang", "tensorrt_llm", "generic")),
            Field("max_num_seqs", "Most sequences in a step", "/serving/max_num_seqs", "number",
                  hint="Empty: what the engine takes."),
            Field("explain", "Explanation", "/explain", "choice", default="brief",
                  choices=(("brief", "Brief"),
                           ("full", "Full: with the loads at which another split is better"))),
        ),
        open=False,
    ),
)  # fmt: skip

_PLAN_ID = Field(
    "plan_id", "Id of a kept plan", "/plan_id", "text",
    hint="“Keep this plan” on the first page gives one.",
)  # fmt: skip

BREAK_EVEN = (
    Group(
        "What it costs and brings in",
        (
            Field("training_cost", "Training, in all", "/training_cost", "text",
                  default="5576000"),
            Field("price_per_call", "Price of a call", "/price_per_call", "text", default="0.01"),
            Field("serving_cost_per_call", "Serving cost of a call", "/serving_cost_per_call",
                  "text", default="0.004"),
            _PLAN_ID,
            Field("currency", "Currency", "/currency", "text", default="USD",
                  hint="Three letters."),
        ),
    ),
    Group(
        "Volume and time",
        (
            Field("calls_per_month", "Calls in the first month", "/calls_per_month", "number",
                  default="152187500"),
            Field("calls", "Calls in all", "/calls", "number"),
            Field("fixed_cost_per_month", "Fixed cost per month", "/fixed_cost_per_month", "text",
                  default="200000"),
            Field("monthly_growth", "Growth of calls", "/monthly_growth", "number",
                  unit="share per month"),
            Field("price_decline_per_month", "Decline of the price", "/price_decline_per_month",
                  "number", unit="share per month", default="0.03"),
            Field("cost_decline_per_month", "Decline of the serving cost",
                  "/cost_decline_per_month", "number", unit="share per month", default="0.02"),
            Field("annual_discount_rate", "Discount rate", "/annual_discount_rate", "number",
                  unit="share per year", default="0.15"),
            Field("horizon_months", "Horizon", "/horizon_months", "number", unit="months",
                  default="24"),
            Field("swing", "Swing of the sensitivity", "/swing", "number", unit="share",
                  default="0.2"),
        ),
    ),
)  # fmt: skip

SELF_HOST = (
    Group(
        "The API",
        (
            Field("input_per_mtok", "Price of input", "/input_per_mtok", "text",
                  unit="per million tokens", default="0.18"),
            Field("output_per_mtok", "Price of output", "/output_per_mtok", "text",
                  unit="per million tokens", default="0.18"),
            Field("input_tokens", "Input of a request", "/input_tokens", "number", unit="tokens",
                  default="1000"),
            Field("output_tokens", "Output of a request", "/output_tokens", "number",
                  unit="tokens", default="250"),
            Field("currency", "Currency", "/currency", "text", default="USD",
                  hint="Three letters."),
        ),
    ),
    Group(
        "Own replicas",
        (
            Field("plan_id", "Id of a kept plan", "/plan_id", "text",
                  hint="In place of a replica's cost and capacity and of the tokens."),
            Field("replica_cost_per_month", "Cost of a replica", "/replica_cost_per_month",
                  "text", unit="per month", default="2204.60"),
            Field("replica_capacity_requests_per_month", "It serves at most",
                  "/replica_capacity_requests_per_month", "number", unit="requests per month",
                  default="20000000"),
            Field("overhead_per_month", "Overhead", "/overhead_per_month", "text",
                  unit="per month"),
            Field("min_replicas", "Fewest replicas", "/min_replicas", "number"),
            Field("peak_to_mean", "Peak over mean load", "/peak_to_mean", "number"),
            Field("requests_per_month", "Volume to compare at", "/requests_per_month", "number",
                  unit="requests per month"),
        ),
    ),
)  # fmt: skip

TERMINOLOGY = (
    Group(
        "Text",
        (
            Field("text", "Text to check", "/text", "long",
                  default="Decode is memory-bound, so we need a bigger GPU."),
            Field("format", "Format", "/format", "choice", default="plain",
                  choices=(("plain", "Plain text"), ("markdown", "Markdown"),
                           ("rst", "reStructuredText"), ("html", "HTML"), ("code", "Code"))),
            Field("plan_id", "Id of a kept plan", "/plan_id", "text",
                  hint="Its figures are evidence for either reading."),
        ),
    ),
)  # fmt: skip
