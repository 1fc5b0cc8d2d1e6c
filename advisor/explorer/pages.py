"""What the pages have in common: where they are, what they ask and how an answer is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.charts.chart import Chart
from advisor.core.terminology.vocabulary import Vocabulary
from advisor.explorer.fields import Group
from advisor.explorer.requests import Parse
from advisor.explorer.state import Values
from advisor.service.database import Database


@dataclass(frozen=True)
class Services:
    """What the pages ask: the database and the checker's rules, how the service reads JSON, its
    address, and whether its API needs keys."""

    database: Database
    vocabulary: Vocabulary
    parse: Parse
    needs_key: bool


@dataclass(frozen=True)
class Question:
    """What a page asks: the values of its form, the request's body as it is written and as the
    service reads it, and the address of the service."""

    values: Values
    body: Mapping[str, Any]
    document: Mapping[str, Any]
    address: str


@dataclass(frozen=True)
class Shown:
    """An answer: one sentence that says it, the parts that show it, and those that stand below its
    pictures."""

    sentence: str
    parts: list[Any] = field(default_factory=list)
    below: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """One page. `ask` answers a question by the service's own functions, `picture` gives the charts
    of the answer, where it has any; both raise InvalidInput as the service does."""

    path: str
    title: str
    lead: str
    groups: tuple[Group, ...]
    ask: Callable[[Services, Question], Shown]
    picture: Callable[[Services, Question], list[Chart]] | None = None
