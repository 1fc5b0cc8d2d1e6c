"""What the words around a phrase say: which resource is meant, and whether the claim is denied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.core.terminology.data import table

_LOOK_BACK = 60
"""Characters before a phrase or cue in which a denial is looked for."""
_CONTRASTS = frozenset({"not", "never", "nor", "neither", "nicht", "pas"})
_DENIALS = _CONTRASTS | {"no", "cannot", "without", "kein"}
"""What denies a claim; of a resource it may be the point: "no capacity left"."""
_DENYING_PAIRS = {("rather", "than"), ("instead", "of")}
_AFFIRMING = {"only", "just", "merely", "simply", "solely", "purely"}
"""After "not" they affirm: "not only memory-bound"."""
_PASSED_OVER = {
    "a", "an", "the", "any", "be", "being", "become", "becoming", "get", "getting",
    "by", "for", "from", "in", "or", "so", "than", "of", "very", "longer", "always",
    "causing", "having", "memory", "compute", "cpu", "gpu", "hbm",
}  # fmt: skip
"""Words that may stand between a denial and what it denies, besides adverbs in -ly."""
QUALIFIER_SENSES = {
    "bandwidth": "bandwidth",
    "bw": "bandwidth",
    "capacity": "capacity",
    "size": "capacity",
    "space": "capacity",
    "footprint": "capacity",
    "latency": "other",
}
"""What a resource named inside the phrase means: "memory-bandwidth-bound"."""


@dataclass(frozen=True)
class Cue:
    """A kind of wording that speaks for one resource; `strength`: `strong`, `default` (decides
    where nothing strong does) or `weak` (only leans)."""

    name: str
    sense: str
    strength: str
    pattern: re.Pattern[str]
    deniable: bool
    reason: str

    def as_dict(self) -> dict[str, str]:
        """JSON-ready, as a finding lists it."""
        return {
            "name": self.name,
            "sense": self.sense,
            "strength": self.strength,
            "reason": self.reason,
        }

    def is_in(self, sentence: str) -> bool:
        """Whether lower-cased `sentence` holds this cue, denied uses left aside."""
        if not self.deniable:
            return bool(self.pattern.search(sentence))
        found = self.pattern.finditer(sentence)
        return any(not _is_denied(sentence, use.start(), _CONTRASTS) for use in found)


@cache
def cues() -> tuple[Cue, ...]:
    """Every cue of `cues.toml`, in its order."""
    return tuple(_cue(entry) for entry in table("cues.toml")["cue"])


def cues_in(sentence: str) -> tuple[Cue, ...]:
    """The cues that lower-cased `sentence` holds, each once."""
    return tuple(cue for cue in cues() if cue.is_in(sentence))


def sense_of(found: Iterable[Cue]) -> str | None:
    """The sense that cues decide: `bandwidth`, `capacity`, `both`, or `None` if none decides."""
    by_strength: dict[str, set[str]] = {"strong": set(), "default": set(), "weak": set()}
    for cue in found:
        by_strength[cue.strength].add(cue.sense)
    senses = by_strength["strong"] or by_strength["default"]
    return "both" if len(senses) > 1 else next(iter(senses), None)


def lean_of(found: Iterable[Cue]) -> str | None:
    """The sense that more cues hint at, or `None` when they balance."""
    counts = {"bandwidth": 0, "capacity": 0}
    for cue in found:
        counts[cue.sense] += 1
    if counts["bandwidth"] == counts["capacity"]:
        return None
    return max(counts, key=counts.__getitem__)


def is_denied(text: str, start: int) -> bool:
    """Whether the claim that begins at `start` of lower-cased `text` is denied: "is not really"."""
    return _is_denied(text, start, _DENIALS)


def _is_denied(text: str, start: int, denials: frozenset[str]) -> bool:
    before = text[max(0, start - _LOOK_BACK) : start].rstrip(" \t\r\n-\"'(")
    if before.endswith(("不是", "并非")):
        return True
    following = ""
    for word in reversed(before.replace("- ", " ").split()):
        if word in denials or word.endswith("n't"):
            return following not in _AFFIRMING
        if (word, following) in _DENYING_PAIRS:
            return True
        passed_over = word in _PASSED_OVER | _AFFIRMING or word.endswith("ly")
        if not passed_over:
            return False
        following = word
    return False


def _cue(entry: dict[str, Any]) -> Cue:
    pattern = re.compile(rf"(?<![a-z])(?:{entry['pattern']})(?![a-z])")
    return Cue(
        name=entry["name"],
        sense=entry["sense"],
        strength=entry["strength"],
        pattern=pattern,
        deniable=entry.get("deniable", False),
        reason=entry["reason"],
    )
