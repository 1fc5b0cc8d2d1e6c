"""The wording checker: what it finds, what it resolves, what it asks, and that no text slows it."""

from __future__ import annotations

import json
import time

import pytest

from advisor.core.errors import InvalidInput
from advisor.core.terminology.check import check, check_all
from advisor.core.terminology.findings import Finding, answered, summary
from advisor.core.terminology.patterns import Pattern, tokens
from advisor.core.terminology.text import lowered
from advisor.core.terminology.vocabulary import extended, standard

RULE = standard().rules[0].as_dict()


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
        "The cap is a memory bound, so it has to fire.",
        "It is memory-bound.",
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


@pytest.mark.parametrize(
    "text",
    [
        "Our 70B endpoint is memory-bound.",
        "The 13B deployment is memory-bound again.",
        "We are memory-bound on the 4090.",
        "Small models are memory-bound on L4 and T4 cards.",
    ],
)
def test_names_of_models_and_devices_put_a_claim_in_scope(text: str) -> None:
    assert only(text).status == "needs_answer"


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
        ("Training is memory-bound and gets OOM.", "capacity"),
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
        ("This kernel is memory-latency-bound.", "other"),
        ("Decode is memory-bound: half of the bytes need to be moved per token.", "bandwidth"),
        ("Weights have to be re-read at each step, so decode is memory-bound.", "bandwidth"),
        ("Decode is memory-bound, as it depends on how fast the cache is read.", "bandwidth"),
        ("The kernel is memory-bound: it takes half a byte per weight to read.", "bandwidth"),
        ("Training is memory-bound: Adam keeps 8 bytes per parameter.", "capacity"),
        ("Serving is memory-bound: 71.5 of 80 GB are used.", "capacity"),
        ("Serving is memory-bound; the card only has 24 GB.", "capacity"),
        ("Serving is memory-bound: the weights alone need 60 GB.", "capacity"),
        ("Serving is memory-bound: no VRAM is left.", "capacity"),
        ("The GPU is memory-bound, with room for only one adapter.", "capacity"),
        ("The kernel is memory-bound, so we pack two values per load.", "bandwidth"),
        ("The kernel is memory-bound, reaching 2.9 of 3.35 TB/s.", "bandwidth"),
        (
            "Serving is memory-bound: the cache takes most of the VRAM and is re-read each step.",
            "both",
        ),
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
        ("Decode is memory-bound: it waits on HBM reads, not on capacity.", "bandwidth"),
        ("Serving is memory-bound in terms of capacity, not in terms of bandwidth.", "capacity"),
        ("GPU decode is memory-bound by the speed of HBM, not by the size of it.", "bandwidth"),
        ("Memory-bound decode depends on HBM speed, not on VRAM size.", "bandwidth"),
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
        "Decode is seldom memory-bound.",
        "It is a common myth that decode is memory-bound.",
        "The claim that decode is memory-bound does not hold at this batch.",
        "They say that decode is memory-bound, but it isn't.",
        "They say that decode is memory-bound; it is not: it waits for the host.",
        "We used to think that decode is memory-bound.",
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
        "Decode is memory-bound, but it isn't alone in that.",
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
        ". But bandwidth",
        "! But bandwidth",
        "\n\nBandwidth",
        "\r\n\r\nbandwidth",
        "\n- bandwidth",
    ):
        assert only(f"Decode is memory-bound{end}").status == "needs_answer"


@pytest.mark.parametrize("sense", ["bandwidth", "capacity", "both", "other"])
def test_an_answer_resolves_the_finding_with_the_advice_for_that_reading(sense: str) -> None:
    asked = only("Decode is memory-bound.")
    resolved = answered(asked, sense)
    assert (resolved.status, resolved.sense, resolved.question) == ("resolved", sense, None)
    assert resolved.advice == RULE["advice"][sense]
    assert resolved.if_bandwidth == (asked.if_bandwidth if sense in ("bandwidth", "both") else None)
    assert resolved.if_capacity == (asked.if_capacity if sense in ("capacity", "both") else None)
    assert (resolved.start, resolved.match, resolved.cues) == (asked.start, asked.match, asked.cues)


def test_an_answer_that_is_no_option_is_refused_with_the_options() -> None:
    with pytest.raises(InvalidInput) as refusal:
        answered(only("Decode is memory-bound."), "bandwith")
    (error,) = refusal.value.errors
    assert (error.pointer, error.nearest) == ("/sense", "bandwidth")
    assert error.allowed == ["bandwidth", "capacity", "both", "other"]


@pytest.mark.parametrize(
    "text", ["Decode is not memory-bound.", "Decode is memory-bandwidth-bound."]
)
def test_a_finding_that_asks_nothing_takes_no_answer(text: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        answered(only(text), "capacity")
    assert refusal.value.errors[0].pointer == "/finding"
    assert "given" not in refusal.value.errors[0].as_dict(), "the wording was not sent"


def test_an_answered_finding_takes_no_second_answer() -> None:
    resolved = answered(only("Decode is memory-bound."), "capacity")
    with pytest.raises(InvalidInput):
        answered(resolved, "bandwidth")


def test_the_summary_counts_every_listed_claim_once() -> None:
    text = "Decode is memory-bound. It is memory-bound by bandwidth. It is not memory-bound."
    assert summary(check(text)) == {"claims": 3, "flagged": 1, "resolved": 1, "denied": 1}
    assert summary([]) == {"claims": 0, "flagged": 0, "resolved": 0, "denied": 0}


def test_a_finding_survives_json() -> None:
    for finding in check("Decode is memory-bound. It is memory-bound by bandwidth, not capacity."):
        assert Finding.from_dict(json.loads(json.dumps(finding.as_dict()))) == finding


def test_the_rules_describe_themselves() -> None:
    assert RULE["id"] == "ambiguous-memory-bound"
    for rule in (each.as_dict() for each in standard().rules):
        assert rule["severity"] in ("warning", "info")
        assert rule["question"]["options"] == list(rule["advice"])
        assert all((rule["description"], rule["cost"], rule["question"]["text"]))


def test_every_cue_has_a_reason_and_a_known_sense_and_every_pattern_parses() -> None:
    vocabulary = standard()
    vocabulary.parse()
    names = [cue.name for cue in vocabulary.cues]
    assert len(set(names)) == len(names)
    for cue in vocabulary.cues:
        assert cue.reason
        assert cue.sense in ("bandwidth", "capacity", "both")
        assert cue.strength in ("strong", "default", "slight", "weak")
        assert set(cue.yields_to) <= set(names)


MEGABYTE = 1_000_000
HOSTILE = {
    "heads of phrases": ("memory ", "-bound"),
    "hyphens": ("memory-", ""),
    "almost a compound": ("memory and ", "bound"),
    "blank lines": ("\n ", "memory-bound"),
    "ends of sentences": ('.")', " memory-bound"),
    "beginnings of cues": ("not really capacity 9 read loading ", "memory-bound"),
    "claims in one sentence": ("😀 memory-bound OOM ", ""),
    "claims by the sentence": ("Decode is memory-bound. ", ""),
    "claims of another field": ("Spark is memory-bound. ", ""),
    "cues that almost match": ("read each token load weights from memory-bound and ", ""),
    "terms of many rules": ("batch size 9 latency 3 ms fp8 use ", ""),
    "sizes": ("1 gb of 2 gb, latency 5 ", "ms"),
    "marks": ("!?", ""),
    "switches": ("<!-- advisor-disable -->\n", "memory-bound"),
    "one word": ("memory", "-bound"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_megabyte_of_hostile_text_is_checked_in_seconds(kind: str) -> None:
    # `make bench` prints the times, and that ten times the text takes ten times as long; this
    # bound is wide enough for a busy machine.
    unit, tail = HOSTILE[kind]
    text = unit * (MEGABYTE // len(unit)) + tail
    began = time.process_time()
    findings = check(text)
    assert time.process_time() - began < 5
    assert all(text[finding.start : finding.end] == finding.match for finding in findings)


def test_what_is_too_much_to_judge_is_said_with_its_offset() -> None:
    text = "Decode is memory-bound. " * 5000
    checked = check_all(text)
    assert checked.unread_from is not None
    assert checked.unread_from % 24 == 0
    assert len(checked.findings) == checked.unread_from // 24
    assert check_all("Decode is memory-bound. " * 300).unread_from is None


# What the rest of the text says


@pytest.mark.parametrize(
    ("definition", "sense"),
    [
        ("By memory-bound we mean that bandwidth is the limit.", "bandwidth"),
        ("We call a workload memory-bound if its weights do not fit on one GPU.", "capacity"),
        ("Memory-bound here means limited by HBM bandwidth.", "bandwidth"),
        ("Memory-bound: limited by memory capacity.", "capacity"),
    ],
)
def test_a_definition_holds_for_what_follows_and_not_for_what_went_before(
    definition: str, sense: str
) -> None:
    text = f"Decode is memory-bound. {definition}\n\nLater on, decode is memory-bound again."
    before, defined, after = check(text)
    assert before.status == "needs_answer"
    assert (defined.status, defined.sense) == ("resolved", sense)
    assert (after.status, after.sense) == ("resolved", sense)
    assert after.cues[-1]["name"] == "definition"
    assert "line 1" in after.cues[-1]["reason"]


def test_a_claim_resolved_in_passing_defines_nothing() -> None:
    text = "Decode is memory-bound at 3 TB/s. Decode on the other GPU is memory-bound."
    assert [finding.status for finding in check(text)] == ["resolved", "needs_answer"]


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("Decode is memory-bound. That is because each token reads all weights.", "bandwidth"),
        ("Serving is memory-bound. In other words, the KV cache runs out of space.", "capacity"),
        ("HBM bandwidth is the limit. So decode is memory-bound.", "bandwidth"),
    ],
)
def test_a_sentence_that_explains_or_follows_resolves_its_neighbour(text: str, sense: str) -> None:
    assert only(text).sense == sense


def test_what_is_said_after_but_of_room_is_no_reason() -> None:
    assert only("Decode is memory-bound, but we never run out of memory.").status == "needs_answer"
    assert only("Although the model must fit in VRAM, decode is memory-bound.").sense is None


def test_room_is_another_matter_than_what_is_sped_up() -> None:
    text = "Quantization reduces memory use and speeds up memory-bound decode."
    assert only(text).status == "needs_answer"


def test_a_possessive_is_the_word_itself() -> None:
    assert matches("vLLM's scheduler sees a memory bottleneck.") == ["memory bottleneck"]


@pytest.mark.parametrize(
    "text",
    [
        "The 8B model fits on the card and decode is memory-bound.",
        "There is plenty of bandwidth, yet decode is memory-bound.",
    ],
)
def test_room_or_bandwidth_in_plenty_is_no_limit(text: str) -> None:
    assert only(text).status == "needs_answer"


@pytest.mark.parametrize(
    "text",
    [
        "I would not call decode memory-bound.",
        "Nothing suggests that decode is memory-bound.",
        "That decode is memory-bound is a myth.",
        "Calling decode memory-bound is misleading.",
        "They wrongly conclude that decode is memory-bound.",
        "La décodage sur GPU n'est pas limité par la mémoire.",
        "Der Kernel ist nicht speichergebunden.",
    ],
)
def test_a_claim_that_nobody_makes_is_denied(text: str) -> None:
    assert only(text).status == "denied"


@pytest.mark.parametrize(
    "text",
    [
        "No wonder decode is memory-bound.",
        "It is not surprising that decode is memory-bound.",
        "Compute matters in prefill rather than in the memory-bound decode phase.",
    ],
)
def test_what_only_looks_like_a_denial_affirms(text: str) -> None:
    assert only(text).status == "needs_answer"


def test_a_document_of_the_field_puts_everyday_wording_in_scope() -> None:
    about = "The LLM runs on GPUs. Decode follows prefill. Tokens are sampled. "
    filler = "We looked at the numbers. We looked again. "
    assert matches(f"{about}{filler}There is a memory bottleneck.") == ["memory bottleneck"]
    assert matches(f"{filler}There is a memory bottleneck.") == []


# Switches


def test_comments_switch_rules_off() -> None:
    text = (
        "Decode is memory-bound.\n"
        "Decode is memory-bound. <!-- advisor-disable-line -->\n"
        "# advisor-disable-next-line ambiguous-memory-bound\n"
        "Decode is memory-bound.\n"
        "// advisor-disable-next-line latency-of-what\n"
        "Decode is memory-bound.\n"
        "<!-- advisor-disable ambiguous-memory-bound, gb-or-gib -->\n"
        "Decode is memory-bound.\n\n"
        "Decode is memory-bound.\n"
        "<!-- advisor-enable -->\n"
        "Decode is memory-bound. It says advisor-disable-line in the middle.\n"
    )
    assert [finding.line for finding in check(text)] == [1, 6, 12]


# Rules of a team


def test_a_team_adds_rules_and_words_and_leaves_others_out() -> None:
    vocabulary = extended(
        {
            "disable": ["latency-of-what", "bandwidth"],
            "rule": [
                {
                    "id": "tps", "description": "TPS.", "severity": "info", "cost": "2",
                    "question": '"{match}": tokens or transactions?', "find": ["tps"],
                    "needs": ["# tps"], "unless": ["token*"],
                    "advice": {"tokens": "Say tok/s.", "transactions": "Say requests/s."},
                }
            ],
            "cue": [
                {
                    "name": "hauling", "sense": "bandwidth", "strength": "strong",
                    "patterns": ["hauling bricks"], "reason": "our own word",
                }
            ],
            "elsewhere": {"ours": ["brewery"]},
        }
    )  # fmt: skip

    def found(text: str) -> list[tuple[str, str | None]]:
        return [(finding.rule, finding.sense) for finding in check(text, vocabulary)]

    assert found("The GPU gives 900 TPS.") == [("tps", None)]
    assert found("Decode is memory-bound by hauling bricks.") == [
        ("ambiguous-memory-bound", "bandwidth")
    ]
    assert found("Decode is memory-bound by its bandwidth.") == [("ambiguous-memory-bound", None)]
    assert found("The LLM has a latency of 300 ms.") == []
    assert found("The brewery workload is memory-bound.") == []
    assert matches("The brewery workload is memory-bound.") == ["memory-bound"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"rules": []}, "'rules' is not known"),
        ({"disable": ["nonsense"]}, "'nonsense' is disabled"),
        ({"elsewhere": {"ours": ["$lakes"]}}, "class 'lakes' that is not known"),
        ({"other_sense": [{"patterns": ["(broken"], "reason": "x"}]}, "is not a pattern"),
        ({"other_sense": [{"patterns": ["a .. b .. c .. d .. e"], "reason": "x"}]}, "gaps"),
    ],
)
def test_a_team_is_told_what_is_wrong_with_its_rules(document: dict, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        extended(document)


def test_a_team_uses_classes_of_words_of_ours_and_of_its_own() -> None:
    cue = {"sense": "capacity", "strength": "strong", "reason": "ours"}
    vocabulary = extended(
        {
            "classes": {"drawer": ["drawer*", "chest"]},
            "cue": [{"name": "drawers", "patterns": ["($drawer|shelf) of $memory"], **cue}],
        }
    )
    for words in ("a chest of VRAM", "two drawers of HBM", "the shelf of memory"):
        (finding,) = check(f"LLM decode is memory-bound by {words}.", vocabulary)
        assert finding.sense == "capacity"


def test_slight_cues_decide_only_alone_and_in_the_field() -> None:
    assert only("LLM decode is memory-bound, it starves.").sense == "bandwidth"
    assert only("LLM decode is memory-bound: it starves and has to reserve room.").sense is None
    assert (
        only("LLM decode is memory-bound: it starves, for KV blocks run out.").sense == "capacity"
    )
    assert only("The loop is memory-bound, it starves.").status == "needs_answer"


@pytest.mark.parametrize(
    "decision",
    ["so we need a bigger GPU", "hence INT4", "and we scale out to four GPUs", "so TP=4 it is"],
)
def test_a_decision_drawn_from_a_claim_does_not_say_what_it_means(decision: str) -> None:
    assert only(f"LLM decode is memory-bound, {decision}.").status == "needs_answer"


def test_sizes_yield_to_a_rate_beside_them() -> None:
    assert only("LLM decode is memory-bound: it takes 16 GB over 1 TB/s.").sense == "bandwidth"
    assert only("LLM serving is memory-bound: it takes 16 GB.").sense == "capacity"


@pytest.mark.parametrize(
    "text",
    [
        "Is LLM prefill memory-bound? No.",
        "Is LLM prefill memory-bound? Not really, it has 400 tokens.",
        "Neither the LLM nor its tokenizer is memory-bound.",
        "None of the GPU kernels was memory-bound.",
        "LLM decode was memory-bound on A100 but isn't on this chip.",
        "We see no sign of the LLM being memory-bound.",
    ],
)
def test_a_negated_subject_or_a_no_that_follows_denies(text: str) -> None:
    assert only(text).status == "denied"


def test_a_question_for_the_reason_is_answered_by_the_next_sentence() -> None:
    finding = only("Why is LLM decode memory-bound? Each step streams all weights from HBM.")
    assert finding.sense == "bandwidth"
    assert "loading per token" in {cue["name"] for cue in finding.cues}


@pytest.mark.parametrize(
    "match",
    ["memory**-bound", "memory-*bound", "memory_-_bound", "mem***-***bound", "memory **bound"],
)
def test_emphasis_inside_a_claim_does_not_hide_it(match: str) -> None:
    assert only(f"LLM decode is *{match}*, they say.").match == match


@pytest.mark.parametrize(
    ("pattern", "text", "matched"),
    [
        ("read* .. weights", "reading all the weights", True),
        ("read* .. weights", "reading: weights", False),
        ("read* .. weights", "reading one two three four weights", False),
        ("wait* (on|for the) memory", "waits for the memory", True),
        ("out of [gpu] memory", "out-of-memory", True),
        ("# gb / s", "300GB/s", True),
        ("4090 card*", "the 4090 cards", True),
        ("4090 card*", "the 3090 cards", False),
        ("# gb / s", "300 GB", False),
        ("< so it", "so it is", True),
        ("< so it", "and so it is", False),
        ("it is >", "so it is", True),
        ("带宽", "受限于带宽", True),
    ],
)
def test_the_language_of_patterns(pattern: str, text: str, matched: bool) -> None:
    words = [token.word for token in tokens(lowered(text))]
    ends = [Pattern(pattern).match(words, at) for at in range(len(words))]
    assert any(end is not None for end in ends) == matched


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        # Travel, pace, reuse.
        ("LLM decode is memory-bound: the whole cache is dragged past the cores.", "bandwidth"),
        ("LLM decode is memory-bound; we overclocked the HBM and it helped.", "bandwidth"),
        ("The GPU kernel is memory-bound, with one multiply-add for each value.", "bandwidth"),
        ("LLM decode is memory-bound: weights come through a straw.", "bandwidth"),
        # Room, failure, what stays, what is bought for room.
        ("LLM training is memory-bound and crashes at step two.", "capacity"),
        ("LLM serving is memory-bound, with no place for another adapter.", "capacity"),
        ("We were memory-bound with the LLM and had to cut the context.", "capacity"),
        ("LLM serving is memory-bound: the next user waits until someone leaves.", "capacity"),
        ("The LLM makes us memory-bound: a box of 64 GB would do.", "capacity"),
        # Both, where it is only hinted at.
        ("LLM serving is memory-bound twice: caches take room and are dragged along.", "both"),
        ("LLM serving is memory-bound, as HBM is too small and too slow.", "both"),
    ],
)
def test_words_of_either_kind_resolve_a_claim_of_the_field(text: str, sense: str) -> None:
    assert only(text).sense == sense


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("LLM decode is memory-bound. DRAM is saturated.", "bandwidth"),
        ("LLM serving is memory-bound. The allocator fails.", "capacity"),
        ("LLM decode is memory-bound.\nDRAM is saturated.", "bandwidth"),
        ("LLM decode is memory-bound. But DRAM is not saturated.", None),
        ("LLM decode is memory-bound. If you run out of memory, say so.", None),
        ("LLM decode is memory-bound. Is DRAM saturated?", None),
        ("LLM decode is memory-bound.\n\nDRAM is saturated.", None),
        ("LLM decode is memory-bound.\n- DRAM is saturated.", None),
        ("LLM decode is memory-bound. A kernel is memory-bound by bandwidth.", None),
        ("All DRAM buses are saturated. LLM decode is memory-bound in that way.", "bandwidth"),
        ("Is the LLM memory-bound? If DRAM is saturated, yes.", "bandwidth"),
    ],
)
def test_the_sentence_that_goes_on_about_a_claim_resolves_it(text: str, sense: str | None) -> None:
    assert check(text)[0].sense == sense


@pytest.mark.parametrize(
    "text",
    [
        "Is the LLM on a 24 GB card memory-bound or compute-bound?",
        "We wonder whether the LLM on a 24 GB card is memory-bound or slow for another reason.",
        "The KV cache hit rate is high; LLM decode is memory-bound.",
        "Prefix cache hits make prefill memory-bound.",
    ],
)
def test_what_only_stands_beside_a_claim_leaves_it_open(text: str) -> None:
    assert only(text).status == "needs_answer"


@pytest.mark.parametrize(
    "text",
    [
        "LLM decode is memory-bound, they say; that's plainly wrong.",
        "No layer of this LLM is memory-bound.",
        "Nobody here would call the GPU memory-bound.",
        "LLM decode is memory-bound on paper; our counters say otherwise.",
        "We thought the GPU was memory-bound; it was the disk.",
    ],
)
def test_a_claim_that_is_taken_back_is_denied(text: str) -> None:
    assert only(text).status == "denied"


@pytest.mark.parametrize("text", ["GPU-memory-bound", "limited by GPU memory", "limited by VRAM"])
def test_what_limits_as_memory_of_a_card_is_a_store(text: str) -> None:
    assert only(f"The LLM is {text}.").sense == "capacity"
    assert only(f"The LLM is {text} at 900 GB/s.").sense == "bandwidth"


def test_lesser_cues_decide_where_they_clearly_outnumber_the_others() -> None:
    text = "LLM decode is memory-bound: it starves, weights are dragged along, DRAM is slow"
    assert only(f"{text}, it is tight.").sense == "bandwidth"
    assert only("LLM decode is memory-bound: it starves, it is tight.").sense is None


@pytest.mark.parametrize(
    "text",
    [
        "memory-**bound**", "**memory**-bound", "memory **bound**", "*memory*-_bound_",
        "limited by **memory**", "**limited** by memory", "memory\\-bound", "~~memory~~-bound",
        "**bottlenecked** *by* memory",
    ],
)  # fmt: skip
def test_emphasis_inside_a_claim_hides_it_not(text: str) -> None:
    (finding,) = check(f"LLM decode is {text} here.")
    assert finding.status == "needs_answer"
