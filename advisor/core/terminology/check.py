"""The check: finds ambiguous terms, resolves those that the text resolves, asks about the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.core.terminology.directives import Directives
from advisor.core.terminology.findings import MEMORY_BOUND, Finding
from advisor.core.terminology.memory_bound import MemoryBound
from advisor.core.terminology.passage import Document, Passage
from advisor.core.terminology.phrases import Phrase, phrases
from advisor.core.terminology.scope import FIELD
from advisor.core.terminology.terms import term_findings
from advisor.core.terminology.text import lowered
from advisor.core.terminology.vocabulary import Vocabulary, standard

MOST_WORK = 17_000
"""Words that are judged, those of sentences with terms, a claim counting for ten: some 500
sentences with a claim. A text with more is hostile, or many texts in one; what is left unread is
said."""
_WORK_OF_A_CLAIM = 10


@dataclass(frozen=True)
class Checked:
    """What was found; `unread_from` is the offset from which on it was too much, if it was."""

    findings: list[Finding]
    unread_from: int | None = None


def check(
    text: str, vocabulary: Vocabulary | None = None, prose: str | None = None
) -> list[Finding]:  # fmt: skip
    """The findings of `check_all` alone."""
    return check_all(text, vocabulary, prose).findings


def check_all(
    text: str, vocabulary: Vocabulary | None = None, prose: str | None = None
) -> Checked:  # fmt: skip
    """Every ambiguous term in `text`, in order. Time is linear in the text.

    `prose` is as long as `text`, with other characters in place of what is no prose: see
    `PARAGRAPH_BREAK` and `OBJECT`.
    """
    vocabulary = vocabulary or standard()
    document = Document(text, lowered(text if prose is None else prose), vocabulary)
    claims, terms = _claims(document), _terms(document)
    memory = None
    if MEMORY_BOUND in vocabulary.by_id:
        memory = MemoryBound(document, vocabulary.by_id[MEMORY_BOUND], claims)
    findings: list[Finding] = []
    unread, work = None, 0
    for number in sorted(claims.keys() | terms):
        passage, here = Passage(document, number), claims.get(number, ())
        work += len(passage.words) + _WORK_OF_A_CLAIM * len(here)
        if work > MOST_WORK:
            unread = document.sentences.start(number)
            break
        found = list(memory.findings(passage, here)) if memory and here else []
        if number in terms:
            found += _terms_of(passage)
        findings += sorted(found, key=lambda finding: (finding.start, finding.end))
    directives = Directives(text)
    listed = [
        each
        for each in findings
        if not directives.cover(each.rule, each.line) and not directives.hold(each.start)
    ]
    return Checked(listed, unread)


def _claims(document: Document) -> dict[int, list[Phrase]]:
    """The claims of a memory limit, by the number of their sentence."""
    found: dict[int, list[Phrase]] = {}
    count = 0
    for phrase in phrases(document.original, document.lower):
        number = document.sentences.at(phrase.start)
        if document.sentences.at(phrase.end - 1) == number:
            found.setdefault(number, []).append(phrase)
            count += 1
        if count * _WORK_OF_A_CLAIM > MOST_WORK:
            break
    return found


def _terms(document: Document) -> set[int]:
    """The numbers of the sentences that may hold another rule's term."""
    found = document.vocabulary.term_trigger.finditer(document.lower)
    return {document.sentences.at(trigger.start()) for trigger in found}


def _terms_of(passage: Passage) -> Iterator[Finding]:
    document = passage.document
    asked = list(
        term_findings(document.vocabulary, document.original, passage.words, document.lines)
    )
    if asked and FIELD in (passage.scope, passage.scope_around):
        yield from asked
