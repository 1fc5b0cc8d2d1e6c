"""The wording checker: what it finds, what it resolves, what it asks, and that no text slows it."""

from __future__ import annotations

import json
import time

import pytest

from advisor.core.errors import InvalidInput
from advisor.core.terminology.check import Finding, answer, check, rules, summary
from advisor.core.terminology.senses import cues


def only(text: str) -> Finding:
    (finding,) = check(text)
    return finding


def matches(text: str) -> list[str]:
    return [finding.match for finding in check(text)]


@pytest.mark.parametrize(
    "phrase",
    [
        "memory-bound", "memory bound", "memorybound", "Memory-Bound", "MEMORY BOUND", "mem-bound",
        "memory-bounded", "memory-limited", "memory limited", "memory-constrained",
        "memory bottleneck", "memory bottlenecks", "memory-bottlenecked", "HBM-bound",
        "HBM limited", "memory-intensive", "memory wall", "memory\u2011bound", "memory\u2013bound",
        "memory\nbound", "memory-\r\n  bound", "memory- and compute-bound",
        "memory or compute bound",
    ],
)  # fmt: skip
def test_every_spelling_of_the_phrase_is_found_and_asked_about(phrase: str) -> None:
    finding = only(f"Decode on this GPU is {phrase}, people say.")
    assert (finding.match, finding.status) == (phrase, "needs_answer")


def test_a_compound_with_compute_is_found_by_its_memory_part() -> None:
    assert matches("Decode is compute- and memory-bound.") == ["memory-bound"]
    assert matches("compute-bound/memory-bound phases of inference") == ["memory-bound"]


@pytest.mark.parametrize(
    "text",
    [
        "The kernel sets memory_bound, is_memory_bound, memoryBound and isMemoryBound.",
        "See https://example.com/blog/memory-bound and https://example.com/memory-bound-llm.",
        "The GPU profiler takes --memory-bound and reads /opt/memory-bound or memory-bound.md.",
        "The GPU algorithm has a lower memory bound of 4 GB and a tight memory bound.",
        "GPU memory limited to 20 GB by the configuration.",
        "A model's memory bound of 4 GB.",
        "Wasm does memory bound checks and in-memory bounds checks beside the GPU.",
        "GPU memory boundary, memory bounds, memory wallet, in-memory bound tables.",
        "Decode is memory\n\nbound to happen.",
        "VTune shows memory bound% beside the LLM.",
        "",
    ],
)
def test_other_senses_identifiers_and_addresses_are_not_listed(text: str) -> None:
    assert check(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "The Spark executor is memory-bound.",
        "Our JVM service is memory-bound.",
        "This container is memory-bound.",
        "The longest string is memory-limited.",
        "Memory-intensive reports run at night.",
    ],
)
def test_claims_of_other_fields_are_left_alone(text: str) -> None:
    assert check(text) == []


def test_a_word_of_the_field_in_the_sentence_outweighs_one_from_elsewhere() -> None:
    assert matches("The container with our LLM is memory-bound.") == ["memory-bound"]


def test_everyday_wording_counts_beside_a_sentence_of_the_field() -> None:
    assert matches("We serve an LLM. There is a memory bottleneck.") == ["memory bottleneck"]
    assert matches("We serve food. There is a memory bottleneck.") == []


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("Decode is memory-bound: memory bandwidth caps it.", "bandwidth"),
        ("Decode is memory-bound at 1571 of 1792GB/s.", "bandwidth"),
        ("By the roofline, decode is memory bound.", "bandwidth"),
        ("Its arithmetic intensity makes decode memory-bound.", "bandwidth"),
        ("At 440 FLOP/byte the kernel is memory-bound.", "bandwidth"),
        ("Decode is memory-bound as it reads all the weights for each token.", "bandwidth"),
        ("HBM traffic makes this kernel memory-bound.", "bandwidth"),
        ("We are memory-bound and get OOM.", "capacity"),
        ("The GPU runs out of memory, so we are memory-bound.", "capacity"),
        ("The model does not fit, so serving is memory-bound.", "capacity"),
        ("Serving is memory-bound: requests are preempted.", "capacity"),
        ("Serving is memory-bound for want of KV cache space.", "capacity"),
        ("Being memory-bound we offload the optimizer.", "capacity"),
        ("The footprint makes the GPU memory-bound.", "capacity"),
        ("Training is VRAM-bound.", "capacity"),
        ("Serving is memory-bound: there is no capacity left.", "capacity"),
        ("Serving is memory-bound, as there is not enough bandwidth.", "bandwidth"),
        ("Inference is memory-bound in both capacity and bandwidth.", "both"),
        ("Decode is memory-bandwidth-bound.", "bandwidth"),
        ("Serving is memory-capacity-bound.", "capacity"),
        ("Pointer chasing is memory-latency-bound.", "other"),
    ],
)
def test_a_resource_named_in_the_sentence_resolves_the_claim(text: str, sense: str) -> None:
    finding = only(text)
    assert (finding.status, finding.sense) == ("resolved", sense)
    assert finding.question is None
    assert finding.severity == "info"


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("Memory-bound here means bandwidth, not capacity.", "bandwidth"),
        ("Memory-bound here means capacity, not bandwidth.", "capacity"),
        ("We are memory-bound by capacity rather than by bandwidth.", "capacity"),
        ("We are memory-bound, not for capacity but for bandwidth.", "bandwidth"),
        ("Bandwidth instead of capacity makes us memory-bound.", "bandwidth"),
    ],
)
def test_a_contrast_resolves_to_the_affirmed_resource(text: str, sense: str) -> None:
    assert only(text).sense == sense


@pytest.mark.parametrize(
    "text",
    [
        "The 18 GB model is memory-bound.",
        "Decode runs on high-bandwidth memory and is memory-bound.",
        "This is the best fit for memory-bound decode.",
        "Memory-bound decode. It saturates the bandwidth.",
    ],
)
def test_words_that_only_look_like_a_resource_do_not_resolve_the_claim(text: str) -> None:
    assert only(text).status == "needs_answer"


def test_a_rate_resolves_what_a_plain_size_only_hints_at() -> None:
    assert only("Memory-bound: an 18 GB model.").lean == "capacity"
    assert only("Memory-bound: an 18 GB model at 300 GB/s.").sense == "bandwidth"


def test_a_rate_outweighs_the_usual_meaning_of_vram_bound() -> None:
    assert only("We are VRAM-limited: the card moves 300 GB/s.").sense == "bandwidth"


@pytest.mark.parametrize(
    "text",
    [
        "Decode is not memory-bound.",
        "Decode isn't really memory-bound.",
        "Decode wasn’t memory bound.",
        "Decode is no longer memory-bound.",
        "Decode cannot be memory-bound.",
        "Decode is compute-bound rather than memory-bound.",
        "Decode is neither compute- nor memory-bound.",
        "Decode is GPU-bound and not CPU-memory-bound.",
        "Decode is never memory-bound at 400 GB/s.",
        "LLM decode runs without causing memory bottlenecks.",
        "Decode 不是 memory-bound。",
    ],
)
def test_a_denied_claim_is_listed_and_not_flagged(text: str) -> None:
    finding = only(text)
    assert (finding.status, finding.sense, finding.question) == ("denied", None, None)
    assert (finding.if_bandwidth, finding.if_capacity, finding.advice) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "Decode is not only memory-bound.",
        "Decode is not compute-bound but memory-bound.",
        "Prefill is not; decode is memory-bound.",
        "It is not true of prefill that it is memory-bound.",
    ],
)
def test_a_not_that_denies_something_else_leaves_the_claim_standing(text: str) -> None:
    assert only(text).status == "needs_answer"


def test_denied_and_affirmed_uses_in_one_sentence_are_told_apart() -> None:
    text = "Prefill is not memory-bound, while decode is memory-bound by bandwidth."
    assert [finding.status for finding in check(text)] == ["denied", "resolved"]


def test_an_ambiguous_claim_asks_and_advises_for_either_reading() -> None:
    finding = only("Decode is memory-bound.")
    assert (finding.start, finding.end, finding.line, finding.column) == (10, 22, 1, 11)
    assert (finding.rule, finding.severity) == ("ambiguous-memory-bound", "warning")
    assert (finding.sense, finding.lean, finding.evidence) == (None, "bandwidth", None)
    assert finding.question is not None
    assert finding.question["options"] == ["bandwidth", "capacity", "both", "other"]
    assert finding.question["text"].startswith('"memory-bound": which resource is the limit')
    assert "bytes per token" in str(finding.if_bandwidth)
    assert "offload" in str(finding.if_capacity)
    assert finding.advice is None
    assert [cue["name"] for cue in finding.cues] == ["decode phase"]


@pytest.mark.parametrize(
    ("text", "lean"),
    [
        ("Decode is memory-bound, unlike compute-bound prefill.", "bandwidth"),
        ("High concurrency and long contexts make it memory-bound.", "capacity"),
        ("The workload is memory-bound.", None),
    ],
)
def test_weak_cues_lean_and_never_resolve(text: str, lean: str | None) -> None:
    finding = only(text)
    assert (finding.status, finding.lean) == ("needs_answer", lean)


def test_offsets_count_code_points_through_emoji_accents_and_every_line_ending() -> None:
    text = "😀 Décodage İ: decode is memory-bound.\r\n👩‍🚀 LLM\rOOM 😀 memory wall\nvram-bound"
    findings = check(text)
    assert [text[f.start : f.end] for f in findings] == [f.match for f in findings]
    assert [(f.match, f.line, f.column) for f in findings] == [
        ("memory-bound", 1, 25),
        ("memory wall", 3, 7),
        ("vram-bound", 4, 1),
    ]


def test_sentences_end_at_stops_blank_lines_and_list_items_not_at_abbreviations() -> None:
    assert only("Decode is memory-bound, e.g. by bandwidth.").sense == "bandwidth"
    for end in (
        ". Bandwidth",
        "! Bandwidth",
        "\n\nBandwidth",
        "\r\n\r\nbandwidth",
        "\n- bandwidth",
    ):
        assert only(f"Decode is memory-bound{end}").status == "needs_answer"


@pytest.mark.parametrize("sense", ["bandwidth", "capacity", "both", "other"])
def test_an_answer_resolves_the_finding_with_the_advice_for_that_reading(sense: str) -> None:
    asked = only("Decode is memory-bound.")
    answered = answer(asked, sense)
    assert (answered.status, answered.sense, answered.question) == ("resolved", sense, None)
    assert answered.advice == rules()[0]["advice"][sense]
    assert answered.if_bandwidth == (asked.if_bandwidth if sense in ("bandwidth", "both") else None)
    assert answered.if_capacity == (asked.if_capacity if sense in ("capacity", "both") else None)
    assert (answered.start, answered.match, answered.cues) == (asked.start, asked.match, asked.cues)


def test_an_answer_that_is_no_option_is_refused_with_the_options() -> None:
    with pytest.raises(InvalidInput) as refusal:
        answer(only("Decode is memory-bound."), "bandwith")
    (error,) = refusal.value.errors
    assert (error.pointer, error.nearest) == ("/sense", "bandwidth")
    assert set(error.allowed) == {"bandwidth", "capacity", "both", "other"}


@pytest.mark.parametrize(
    "text", ["Decode is not memory-bound.", "Decode is memory-bandwidth-bound."]
)
def test_a_finding_that_asks_nothing_takes_no_answer(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        answer(only(text), "capacity")
    assert refusal.value.errors[0].pointer == "/finding"


def test_an_answered_finding_takes_no_second_answer() -> None:
    answered = answer(only("Decode is memory-bound."), "capacity")
    with pytest.raises(InvalidInput):
        answer(answered, "bandwidth")


def test_the_summary_counts_every_listed_claim_once() -> None:
    text = "Decode is memory-bound. It is memory-bound by bandwidth. It is not memory-bound."
    assert summary(check(text)) == {"claims": 3, "flagged": 1, "resolved": 1, "denied": 1}
    assert summary([]) == {"claims": 0, "flagged": 0, "resolved": 0, "denied": 0}


def test_a_finding_survives_json() -> None:
    for finding in check("Decode is memory-bound. It is memory-bound by bandwidth, not capacity."):
        assert Finding.from_dict(json.loads(json.dumps(finding.as_dict()))) == finding


def test_the_rules_describe_themselves() -> None:
    (rule,) = rules()
    assert (rule["id"], rule["severity"]) == ("ambiguous-memory-bound", "warning")
    assert "bandwidth" in rule["description"]
    assert rule["question"]["options"] == ["bandwidth", "capacity", "both", "other"]
    assert set(rule["advice"]) == set(rule["question"]["options"])


def test_every_cue_has_a_reason_a_known_sense_and_bounded_repetition_only() -> None:
    names = [cue.name for cue in cues()]
    assert len(set(names)) == len(names)
    for cue in cues():
        assert cue.reason
        assert cue.sense in ("bandwidth", "capacity")
        assert cue.strength in ("strong", "default", "weak")
        assert not set("*+") & set(cue.pattern.pattern), cue.name
        assert ",}" not in cue.pattern.pattern, cue.name


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    ("unit", "tail"),
    [
        ("memory ", "-bound"),
        ("memory-", ""),
        ("memory and ", "bound"),
        ("\n ", "memory-bound"),
        ('.")', " memory-bound"),
        ("not really capacity 9 read loading ", "memory-bound"),
        ("😀 memory-bound OOM ", ""),
    ],
)
def test_a_megabyte_of_hostile_text_is_checked_in_time(unit: str, tail: str) -> None:
    text = unit * (MEGABYTE // len(unit)) + tail
    began = time.process_time()
    findings = check(text)
    assert time.process_time() - began < 20
    assert all(text[finding.start : finding.end] == finding.match for finding in findings)
