"""The rules about other terms than "memory-bound": each asks where a figure is open to two
readings, and is silent where the text says which."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advisor.core.terminology.check import check

ASKED: dict[str, list[tuple[str, str | None]]] = {
    "latency-of-what": [
        ("We serve the LLM at a p95 latency of 300 ms.", "latency of 300 ms"),
        ("Token latency aside, the latency budget is 2 s for the LLM.", None),
        ("The LLM endpoint has a latency target of 500 ms.", "latency target of 500 ms"),
        ("vLLM answered with 150 ms latency.", "150 ms latency"),
    ],
    "throughput-of-what": [
        ("The LLM reaches a throughput of 2400 tokens/s.", "throughput of 2400 tokens"),
        ("With vLLM throughput rose to 9k tok/s.", "throughput rose to 9k tok"),
    ],
    "gb-or-gib": [
        ("The weights need 78 GB of the GPU's 80 GB.", "78 GB"),
        ("A 23.5 GB model fits into the GPU's 24 GB.", "23.5 GB"),
    ],
    "dense-or-sparse-tflops": [
        ("The H100 offers 1979 TFLOPS in FP8.", "1979 TFLOPS"),
        ("This GPU has a peak of 1,000 TFLOPS.", "1,000 TFLOPS"),
    ],
    "link-direction": [
        ("The GPUs talk over NVLink at 900 GB/s.", "NVLink at 900 GB/s"),
        ("PCIe 5.0 gives the GPU 128 GB/s.", None),
        ("Infinity Fabric between the GPUs: 128 GB/s.", None),
    ],
    "batch-of-what": [
        ("In production the LLM runs at a batch size of 64.", "batch size of 64"),
        ("We serve the model on eight GPUs with batch size 128.", "batch size 128"),
    ],
    "fits-with-what": [
        ("The 70B LLM in FP8 fits on one H100.", "fits on one H100"),
        ("Qwen3-32B fits on a single GPU.", "fits on a single GPU"),
    ],
    "total-or-active-parameters": [
        ("We serve a 235B MoE with vLLM.", "235B MoE"),
        ("The MoE model has 47B parameters.", None),
    ],
    "parallelism-of-what-kind": [
        ("We run the LLM with a parallelism of 8.", "parallelism of 8"),
        ("The 405B model needs 8-way parallelism on these GPUs.", "8-way parallelism"),
    ],
    "fp8-of-what": [
        ("We serve the LLM in FP8.", "serve the LLM in FP8"),
        ("vLLM runs with FP8 enabled: we use FP8 on the H100.", None),
    ],
}

SILENT: dict[str, list[str]] = {
    "latency-of-what": [
        "We want low latency from the LLM.",
        "The TTFT latency of the LLM is 300 ms.",
        "Inter-token latency of the LLM is 20 ms.",
        "End-to-end latency of the LLM is 2 s.",
        "The GPU kernel latency is 12 ms.",
        "NVLink latency between GPUs is 2 ms.",
        "The web page has a latency of 300 ms.",
    ],
    "throughput-of-what": [
        "The LLM has a high throughput.",
        "The LLM reaches an output throughput of 2400 tokens/s.",
        "Throughput per GPU is 300 tokens/s for the LLM.",
        "Throughput is 12 requests/s for the LLM.",
        "The tokenizer reads 50 tokens.",
    ],
    "gb-or-gib": [
        "The weights need 40 GB of the GPU's 80 GB.",
        "The weights need 78 GiB of the GPU's 80 GB.",
        "The GPU has 80 GB.",
        "The model needs 81 GB, the GPU has 80 GB.",
        "The GPU reads 78 GB of its 80 GB at 3350 GB/s.",
    ],
    "dense-or-sparse-tflops": [
        "The H100 offers 989 dense TFLOPS in BF16.",
        "The H100 offers 1979 TFLOPS in FP8 with sparsity.",
        "The GPU kernel reached 620 TFLOPS in BF16.",
        "The old GPU offers 14 TFLOPS in FP32.",
    ],
    "link-direction": [
        "NVLink moves 450 GB/s per direction between GPUs.",
        "NVLink moves 900 GB/s between GPUs, both directions added.",
        "The HBM of the GPU gives 3350 GB/s.",
        "The all-reduce over NVLink measured 360 GB/s on these GPUs.",
    ],
    "batch-of-what": [
        "The LLM serves a batch size of 64 per replica.",
        "The LLM serves 64 concurrent requests.",
        "In production the LLM runs at batch size 1.",
        "Training the LLM uses a batch size of 512.",
        "The GPU kernel is measured at batch size 64.",
        "We serve a static batch size of 64 of the LLM.",
    ],
    "fits-with-what": [
        "The weights alone of the LLM fit on one H100.",
        "The LLM does not fit on one GPU.",
        "Check whether the LLM fits on one GPU.",
        "The LLM fits on one H100 with the KV cache of 64 requests.",
        "The tile fits in shared memory of one GPU.",
    ],
    "total-or-active-parameters": [
        "We serve a 235B MoE with 22B active.",
        "The MoE has 235B parameters in total.",
        "We serve Qwen3-235B-A22B, an MoE.",
        "We serve a 70B dense LLM.",
    ],
    "parallelism-of-what-kind": [
        "We run the LLM with a tensor parallelism of 8.",
        "We use data parallelism on 8 GPUs.",
        "The GPU kernel needs more parallelism.",
        "The LLM is built with a parallelism of 8 make jobs, that is build parallelism.",
        "We run TP=8 on these GPUs.",
    ],
    "fp8-of-what": [
        "We serve the LLM with FP8 weights.",
        "We serve the LLM with an FP8 KV cache.",
        "FP8 halves the bytes on this GPU.",
        "We use FP8 tensor cores of the GPU.",
        "We serve the FP8 checkpoint of the LLM.",
    ],
}


CASES = [
    json.loads(line)
    for line in (Path(__file__).parent / "data/rule_cases.jsonl").read_text("utf-8").splitlines()
]
"""Sentences made up before the rules were widened, each with the rule that should ask, or should
not, about it."""


def of_rule(rule: str, text: str) -> list[str]:
    return [found.match for found in check(text) if found.rule == rule]


@pytest.mark.parametrize(
    ("rule", "text", "match"),
    [(rule, text, match) for rule, cases in ASKED.items() for text, match in cases],
)
def test_a_figure_open_to_two_readings_is_asked_about(rule: str, text: str, match: str | None):
    if text.startswith("Token latency"):
        assert of_rule(rule, text) == []  # the other latency of the sentence has its name
        return
    (found,) = [found for found in check(text) if found.rule == rule]
    assert match in (None, found.match)
    assert text[found.start : found.end] == found.match
    assert found.question is not None
    assert found.question["options"] == list(found.readings or ())
    assert found.status == "needs_answer"
    assert (found.if_bandwidth, found.if_capacity) == (None, None)


@pytest.mark.parametrize(
    ("rule", "text"), [(rule, text) for rule, texts in SILENT.items() for text in texts]
)
def test_what_is_qualified_or_no_claim_is_left_alone(rule: str, text: str):
    assert of_rule(rule, text) == []


def test_rules_ask_about_what_is_open_and_hardly_ever_about_what_is_not():
    asked = [bool(of_rule(case["rule"], case["text"])) for case in CASES]
    open_ones = [found for case, found in zip(CASES, asked, strict=True) if case["asks"]]
    settled = [
        case["text"] for case, found in zip(CASES, asked, strict=True) if found > case["asks"]
    ]
    assert len(open_ones) > 50
    assert len(CASES) > 140
    assert sum(open_ones) / len(open_ones) >= 0.95
    assert settled == []


def test_a_size_in_gb_is_asked_about_beside_one_in_gib_that_its_unit_decides():
    # 40 GB are 37.25 GiB.
    assert of_rule("gb-or-gib", "The LLM takes 40 GB and the GPU has 39.4 GiB.") == ["40 GB"]
    for other in ("37.2", "40.1"):
        text = f"The LLM takes 40 GB and the GPU has {other} GiB."
        assert of_rule("gb-or-gib", text) == []


def test_the_figure_of_a_format_belongs_to_its_name():
    assert of_rule("fits-with-what", "FP8 fits on one GPU.") == ["fits on one GPU"]


def test_microseconds_are_no_seconds():
    assert of_rule("latency-of-what", "The GPU's latency is 12 µs.") == []
    assert of_rule("latency-of-what", "The LLM has a latency of 1.8 s.") == ["latency of 1.8 s"]


def test_a_rule_asks_once_a_sentence():
    text = "The LLM has a latency of 300 ms, and a latency of 200 ms at night."
    assert len(of_rule("latency-of-what", text)) == 1


def test_severity_goes_by_what_a_wrong_reading_costs():
    of = {found.rule: found.severity for found in check(
        "The LLM needs 78 GB of the GPU's 80 GB. The LLM fits on one H100."
    )}  # fmt: skip
    assert of == {"gb-or-gib": "info", "fits-with-what": "warning"}
