"""The words of the checker: the data files beside this module, and what a team adds to them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import resources
from typing import Any

from advisor.core.terminology.patterns import Matcher, Pattern, spelt_out

WORDS = ("field", "shared", "computing", "elsewhere")
GRAMMAR = (
    "denial", "affirmation", "resource_denial", "resource_affirmation", "definition",
    "about_speed", "open_question", "explanation", "consequence", "reason_asked", "refusal",
    "other_matter",
)  # fmt: skip
FILES = (
    "classes", "cues_bandwidth", "cues_capacity", "cues_other", "scope", "grammar", "rules",
)  # fmt: skip
DECIDING = ("strong", "default", "slight")
"""Strengths of cues that decide, the greatest first."""


@dataclass(frozen=True, eq=False)
class Cue:
    """A kind of wording that speaks for one resource.

    `strength`: `strong` decides, `default` and then `slight` where nothing stronger does, `weak`
    only leans. `names`: it names the resource itself, which "not" takes away. `yields_to`: beside
    one of these it only hints. `only`: words of which the claim must have one. `store`: it speaks
    of every claim about memory as a store.
    """

    name: str
    sense: str
    strength: str
    reason: str
    patterns: tuple[str, ...]
    exceptions: tuple[str, ...] = ()
    names: bool = False
    yields_to: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    store: bool = False

    @property
    def decides_anywhere(self) -> bool:
        """Whether it decides where no word speaks for this field, too."""
        return self.strength != "slight"

    def as_dict(self) -> dict[str, str]:
        """JSON-ready, as a finding lists it."""
        return {
            "name": self.name,
            "sense": self.sense,
            "strength": self.strength,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class OtherSense:
    """Wordings in which a claim, in one of the words of `only` if there are any, is none."""

    patterns: tuple[str, ...]
    only: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Rule:
    """A term that readers take in more than one way, with its question.

    `advice` says for each of `options` what it would mean; `cost` what a wrong reading costs.
    `find` is the wording that makes a claim; the rule is silent where its sentence holds one of
    `unless`, or none of `needs`, or a number below `least`. `check` names what else is asked of it.
    """

    id: str
    description: str
    severity: str
    cost: str
    question: str
    advice: Mapping[str, str]
    find: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    least: float = 0
    check: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """What may be answered."""
        return tuple(self.advice)

    def asked(self, match: str) -> dict[str, Any]:
        """The question about the words found."""
        return {"text": self.question.replace("{match}", match), "options": list(self.options)}

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, as the list of rules shows it."""
        return {
            "id": self.id,
            "description": self.description,
            "severity": self.severity,
            "cost": self.cost,
            "question": self.asked(self.id),
            "advice": dict(self.advice),
        }


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Rules, cues and words. What is made of them for matching is made once."""

    rules: tuple[Rule, ...]
    cues: tuple[Cue, ...]
    words: Mapping[str, tuple[str, ...]]
    other_senses: tuple[OtherSense, ...]
    grammar: Mapping[str, tuple[str, ...]]
    classes: Mapping[str, Sequence[str]]
    by_id: Mapping[str, Rule] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {rule.id: rule for rule in self.rules})

    @cached_property
    def scope_matcher(self) -> Matcher[str]:
        """Finds words of the field, shared ones, those of computing, and those from elsewhere."""
        return Matcher(self.words.items())

    @cached_property
    def cue_matcher(self) -> Matcher[Cue]:
        """Finds cues."""
        return Matcher((cue, cue.patterns) for cue in self.cues)

    @cached_property
    def exception_matcher(self) -> Matcher[Cue]:
        """Finds what looks like a cue and is none."""
        return Matcher((cue, cue.exceptions) for cue in self.cues)

    @cached_property
    def other_sense_matcher(self) -> Matcher[OtherSense]:
        """Finds claims that are none."""
        return Matcher((sense, sense.patterns) for sense in self.other_senses)

    @cached_property
    def grammar_matcher(self) -> Matcher[str]:
        """Finds how a sentence denies or defines a claim that is marked in it."""
        return self._grammar("denial", "affirmation", "definition", "about_speed", "open_question")

    @cached_property
    def resource_matcher(self) -> Matcher[str]:
        """Finds how a sentence denies a resource that is marked in it."""
        return self._grammar("resource_denial", "resource_affirmation")

    @cached_property
    def opening_matcher(self) -> Matcher[str]:
        """Finds how a sentence opens."""
        return self._grammar(
            "explanation", "consequence", "reason_asked", "refusal", "other_matter"
        )

    def _grammar(self, *kinds: str) -> Matcher[str]:
        return Matcher((kind, self.grammar[kind]) for kind in kinds)

    @cached_property
    def term_matcher(self) -> Matcher[tuple[Rule, str]]:
        """Finds the terms of the rules, and what stands for or against each."""
        kinds = ("find", "unless", "needs")
        return Matcher(
            ((rule, kind), getattr(rule, kind)) for rule in self.rules for kind in kinds
        )  # fmt: skip

    def parse(self) -> None:
        """Parse every pattern. Raises `ValueError` for one that is none."""
        for name in (
            "scope",
            "cue",
            "exception",
            "other_sense",
            "grammar",
            "resource",
            "opening",
            "term",
        ):
            getattr(self, f"{name}_matcher")

    @cached_property
    def term_trigger(self) -> re.Pattern[str]:
        """What a sentence must hold for any of the rules' terms to be in it."""
        texts = (text for rule in self.rules for text in rule.find)
        words = sorted({word for text in texts for word in Pattern(text).sign()})
        return re.compile(rf"(?<![a-z])(?:{'|'.join(words) or '(?!)'})")


def standard() -> Vocabulary:
    """What is shipped."""
    return _standard()


@cache
def _standard() -> Vocabulary:
    return _read([_table(f"{name}.toml") for name in FILES])


def extended(document: Mapping[str, Any]) -> Vocabulary:
    """The shipped words with those of a team, parsed TOML in the same form, added.

    A rule or cue of the same name takes the place of ours; `disable` lists ids of rules and names
    of cues to leave out. Raises `ValueError` with a sentence about what is wrong.
    """
    unknown = document.keys() - {
        "rule",
        "cue",
        "other_sense",
        "disable",
        "classes",
        *WORDS,
        *GRAMMAR,
    }
    if unknown:
        raise ValueError(f"{min(unknown)!r} is not known")
    ours = standard()
    added = _read([document], ours.classes)
    disabled = set(document.get("disable", ()))
    names = {rule.id for rule in ours.rules} | {cue.name for cue in ours.cues}
    if disabled - names:
        raise ValueError(f"{min(disabled - names)!r} is disabled, and is neither a rule nor a cue")
    cues = {cue.name: cue for cue in (*ours.cues, *added.cues)}
    rules = {rule.id: rule for rule in (*ours.rules, *added.rules)}
    both = replace(
        added,
        rules=tuple(rule for name, rule in rules.items() if name not in disabled),
        cues=tuple(cue for name, cue in cues.items() if name not in disabled),
        words={kind: ours.words[kind] + added.words[kind] for kind in WORDS},
        other_senses=ours.other_senses + added.other_senses,
        grammar={kind: ours.grammar[kind] + added.grammar[kind] for kind in GRAMMAR},
    )
    both.parse()
    return both


def _read(
    documents: Sequence[Mapping[str, Any]], known: Mapping[str, Sequence[str]] | None = None
) -> Vocabulary:  # fmt: skip
    """The vocabulary that parsed data files make up together, with the classes `known` before."""
    classes = dict(known or {})
    for document in documents:
        classes |= document.get("classes", {})

    def all_of(kind: str) -> list[Mapping[str, Any]]:
        return [entry for document in documents for entry in document.get(kind, ())]

    def spelt(patterns: Iterable[str]) -> tuple[str, ...]:
        return tuple(spelt_out(each, classes) for each in patterns)

    def cue(entry: Mapping[str, Any]) -> Cue:
        lists = {name: tuple(entry.get(name, ())) for name in ("only", "yields_to")}
        fields = {**entry, **lists}
        fields["exceptions"] = spelt(fields.pop("except", ()))
        return Cue(**{**fields, "patterns": spelt(entry["patterns"])})

    def rule(entry: Mapping[str, Any]) -> Rule:
        kinds = ("find", "unless", "needs")
        return Rule(**{**entry, **{kind: spelt(entry.get(kind, ())) for kind in kinds}})

    def words_of(kind: str) -> Iterable[str]:
        for document in documents:
            for words in document.get(kind, {}).values():
                yield from spelt(words)

    return Vocabulary(
        rules=tuple(map(rule, all_of("rule"))),
        cues=tuple(map(cue, all_of("cue"))),
        words={kind: tuple(words_of(kind)) for kind in WORDS},
        other_senses=tuple(
            OtherSense(spelt(entry["patterns"]), tuple(entry.get("only", ())))
            for entry in all_of("other_sense")
        ),
        grammar={
            kind: tuple(text for entry in all_of(kind) for text in spelt(entry["patterns"]))
            for kind in GRAMMAR
        },
        classes=classes,
    )


def _table(filename: str) -> dict[str, Any]:
    """A data file of this package as parsed TOML."""
    folder = resources.files(__package__) / "data"
    return tomllib.loads(folder.joinpath(filename).read_text("utf-8"))
