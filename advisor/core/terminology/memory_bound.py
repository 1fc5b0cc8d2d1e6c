"""The rule about "memory-bound": judges each claim by its sentence and by what went before."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import partial

from advisor.core.terminology import findings, senses
from advisor.core.terminology.findings import Finding
from advisor.core.terminology.passage import Document, Passage
from advisor.core.terminology.patterns import TERM, Token
from advisor.core.terminology.phrases import Phrase
from advisor.core.terminology.scope import FIELD, NOWHERE, SHARED, is_in_scope
from advisor.core.terminology.senses import Sentence
from advisor.core.terminology.vocabulary import Cue, Rule


class MemoryBound:
    """The rule at work on one text: it remembers what was defined."""

    def __init__(self, document: Document, rule: Rule, claimed: Container[int]) -> None:
        """`claimed`: the numbers of the sentences that make a claim."""
        self._document, self._rule, self._claimed = document, rule, claimed
        self._defined: tuple[str, int] | None = None

    def findings(self, passage: Passage, claims: Sequence[Phrase]) -> Iterator[Finding]:
        """What to list of the claims in one sentence. Sentences are to be given in their order."""
        here = passage.scope
        around = NOWHERE if here == FIELD else passage.scope_around
        listed = [
            claim for claim in claims if is_in_scope(here, around, of_art=claim.of_art)
        ]  # fmt: skip
        if not listed:
            return
        sentence = Sentence(self._document.vocabulary, passage.words, claims)
        for claim in listed:
            finding = self._judged(
                passage, sentence, claim, in_field=not {FIELD, SHARED}.isdisjoint((here, around))
            )
            if finding is not None:
                yield finding

    def _judged(
        self, passage: Passage, sentence: Sentence, claim: Phrase, *, in_field: bool
    ) -> Finding | None:  # fmt: skip
        wording = self._document.lower[claim.start : claim.end]
        deciding, hints = sentence.cues_of(claim, wording)
        said = sentence.said_of(claim)
        if claim.of_size:
            if senses.sense_of(deciding) != "capacity":
                return None
        elif sentence.has_other_sense(claim, wording):
            return None
        if sentence.is_denied(claim) or self._is_refused(passage):
            return findings.denied(self._asked(claim, hints))
        if not in_field:
            deciding = [cue for cue in deciding if cue.decides_anywhere]
        if "open_question" in said:
            deciding = []
        deciding = deciding or self._beside(passage, claim, in_field=in_field)
        finding = self._asked(claim, list(dict.fromkeys((*deciding, *hints))))
        sense = claim.qualifier or senses.sense_of(deciding)
        if sense == "capacity" and not in_field and not _is_of_computing(hints):
            return None
        if sense is None:
            return self._as_defined(finding)
        if "definition" in said:
            self._defined = (sense, finding.line)
        return findings.resolved(finding, sense, self._rule.advice)

    def _asked(self, claim: Phrase, hints: Sequence[Cue]) -> Finding:
        document = self._document
        return findings.asked(
            self._rule, document.original, claim.start, claim.end,
            document.lines.position(claim.start),
            senses.lean_of(hints), tuple(cue.as_dict() for cue in hints),
        )  # fmt: skip

    def _is_refused(self, passage: Passage) -> bool:
        """Whether the sentence is a question that the next one answers with no."""
        following = passage.beside(1)
        return passage.is_question and senses.opens_as(
            self._document.vocabulary, following.words, "refusal"
        )

    def _beside(self, passage: Passage, claim: Phrase, *, in_field: bool) -> list[Cue]:
        """Cues of the sentences beside this one that speak of its claim.

        One that explains it, or of which it is the consequence, counts as its own words do. One
        that just goes on in the same paragraph counts where it is plain, and makes no claim.
        """
        opens = partial(senses.opens_as, self._document.vocabulary)
        following, before = passage.beside(1), passage.beside(-1)
        beside: list[Token] = []
        if opens(following.words, "explanation") or opens(passage.words, "reason_asked"):
            beside += following.words
        if opens(passage.words, "consequence"):
            beside += before.words
        if not beside and passage.runs_on and not opens(following.words, "other_matter"):
            beside += () if following.number in self._claimed else following.words
            in_field = False
        if not beside:
            return []
        # As if the claim led them.
        words = [Token(TERM, claim.start, claim.end), *beside]
        found = Sentence(self._document.vocabulary, words, ()).cues_of(claim, "")[0]
        return [cue for cue in found if in_field or cue.decides_anywhere]

    def _as_defined(self, finding: Finding) -> Finding:
        """The finding in the sense that the text defined before, if it did."""
        if self._defined is None:
            return finding
        sense, line = self._defined
        reason = f"line {line} says what the term means"
        cue = {"name": "definition", "sense": sense, "strength": "strong", "reason": reason}
        return findings.with_cue(findings.resolved(finding, sense, self._rule.advice), cue)


def _is_of_computing(hints: Sequence[Cue]) -> bool:
    """Whether a sentence that names no field is of this one by its cues: claims of other fields
    mostly mean capacity, in words that are the same everywhere."""
    return any(cue.sense == "bandwidth" for cue in hints)
