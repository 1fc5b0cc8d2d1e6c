"""Finds the claims of a memory limit by their wording: "memory-bound" and its relatives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.core.terminology.text import FILLER

_MARKS = rf"{FILLER}*+[*_~\\]{{0,3}}+{FILLER}*+"
"""Marks of emphasis, what escapes a mark, and what counts for nothing."""
_JOINT = rf"(?:(?:{_MARKS}[-\u2010-\u2013\s]){{1,10}}+{_MARKS})?+"
"""What joins the words of a claim; marks of emphasis may stand there: `**memory**-bound`."""
_SPACE = rf"{_MARKS}\s{_MARKS}"
_BE = r"(?:is|was|are|becomes?|became|remains?|being|as)"
_THE_BOTTLENECK = rf"(?:the|a|our){_SPACE}(?:(?:main|real|only){_SPACE})?bottleneck"
_QUALIFIERS = {
    "bandwidth": "bandwidth", "bw": "bandwidth", "throughput": "bandwidth", "traffic": "bandwidth",
    "speed": "bandwidth", "access": "bandwidth", "io": "bandwidth", "i/o": "bandwidth",
    "capacity": "capacity", "size": "capacity", "space": "capacity", "footprint": "capacity",
    "usage": "capacity", "latency": "other",
}  # fmt: skip
"""What a resource named inside the phrase means: "memory-bandwidth-bound"."""
_NAMED = "|".join(map(re.escape, _QUALIFIERS))
_PHRASE = re.compile(
    rf"""(?<![a-z0-9])(?<![a-z0-9]_)(?<!in-)
    (?:
      (?:(?:cpu|(?P<prefix>gpu)|host|device|system)-)?
      (?:
        (?P<head>memory|mem|vram|hbm) {_JOINT}
        (?:(?P<qualifier>{_NAMED}) {_JOINT})?
        (?:
          (?P<bound>bound(?:ness|edness)?) | bounded
        | (?P<partner>(?:and|or)\s[a-z]{{2,12}}[-\s]|/[a-z]{{2,12}}[-\s])(?:bound|limited)
        | limited | constrained | intensive | bottleneck(?:s|ed)? | wall
        )
      | (?P<lower>memory{_SPACE}lower{_SPACE}bound)
      | (?P<store>(?:(?:gpu|device|video)(?:'s)?{_SPACE}memory|vram)
          {_SPACE}{_BE}{_SPACE}{_THE_BOTTLENECK})
      | memory{_SPACE}{_BE}{_SPACE}{_THE_BOTTLENECK}
      | bottleneck{_SPACE}{_BE}{_SPACE}(?:the{_SPACE})?(?:gpu{_SPACE})?memory (?!{_JOINT}[a-z])
      | (?:bound|(?P<kept>limited|constrained)|bottlenecked){_SPACE}by{_SPACE}(?:the{_SPACE})?
          (?:(?P<card>gpu|device){_SPACE})?(?:memory|(?P<vram>vram)|hbm)
          (?!{_JOINT}(?:{_NAMED}|pressure|transfers?|reads?|loads?|movement|clocks?|bus|channels?|
          controllers?))
      )
      (?![a-z0-9%]|_[a-z0-9]|[-.][a-z0-9])   # part of a longer name, or a profiler's metric
    | (?P<romance>limitée?s?{_SPACE}par{_SPACE}la{_SPACE}mémoire) (?![a-z0-9_])
    | (?P<german>speichergebunden) (?=(?:e[mnrs]?)?(?![a-z0-9_]))
    )
    | (?P<chinese>(?:内存|显存|(?P<access>访存))(?:受限|瓶颈|密集|墙))
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Phrase:
    """A claim found at code points `start` to `end`.

    `qualifier` is the sense of a resource named inside it ("memory-bandwidth-bound"). `of_art` says
    that it is used of computing only ("memory-bound", not "memory wall"), `of_store` that it speaks
    of a card's memory as a store ("GPU memory is the bottleneck"), `of_size` that it is a claim
    only where the sentence is about size ("memory lower bound").
    """

    start: int
    end: int
    qualifier: str | None
    of_art: bool
    of_store: bool
    of_size: bool


def phrases(original: str, text: str) -> Iterator[Phrase]:
    """The claims in `text`, which is `original` lower-cased, in order."""
    for found in _PHRASE.finditer(text):
        if not _is_identifier(original, found):
            named = _QUALIFIERS.get(found["qualifier"] or "")
            yield Phrase(
                start=found.start(),
                end=found.end(),
                qualifier="bandwidth" if found["access"] else named,
                of_art=bool(found["bound"] or found["partner"] or found["german"]),
                of_store=_is_of_store(found) and not named,
                of_size=bool(found["lower"]),
            )


def _is_of_store(found: re.Match[str]) -> bool:
    """Whether it speaks of a card's memory: "VRAM-bound", "GPU-memory-bound", "limited by GPU
    memory"."""
    owned = found["vram"] or found["prefix"] or (found["kept"] and found["card"])
    return bool(found["store"] or owned) or found["head"] == "vram"


def _is_identifier(original: str, found: re.Match[str]) -> bool:
    """Whether the phrase is a name in code, an option or part of an address: `memoryBound`."""
    head_end = found.end("head")
    joined = head_end > 0 and original[head_end : head_end + 1].isalpha()
    if joined and original[head_end].isupper() and original[head_end - 1].islower():
        return True
    before = original[max(0, found.start() - 100) : found.start()]
    word_so_far = re.split(r"\s", before)[-1]
    return "://" in word_so_far or word_so_far.startswith(("--", "/", "$", "@"))
