"""Many profiles at once: in with one outcome each, and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from advisor.core.errors import FieldError, InvalidInput
from advisor.service.database import Database
from advisor.service.profiles import ProfileKind
from advisor.store.errors import NameTaken, StaleVersion
from advisor.store.profiles import StoredProfile

PAGE = 200

Result = Literal["created", "replaced", "unchanged", "malformed", "taken", "invalid"]


@dataclass(frozen=True)
class Item:
    """One profile of a file: the loaded body, or what is wrong with what stands there."""

    line: int
    body: Mapping[str, Any] | None
    errors: Sequence[FieldError] = ()
    result: Result = "invalid"


@dataclass(frozen=True)
class Outcome:
    """What became of an item. `name` and `version` are null where it was refused."""

    line: int
    result: Result
    name: str | None = None
    version: int | None = None
    errors: Sequence[FieldError] = ()

    @property
    def stored(self) -> bool:
        """Whether the profile is there now."""
        return self.result in ("created", "replaced", "unchanged")


class NotAllStored(Exception):
    """Some of the items were refused, so none was stored."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


def store_all(
    database: Database,
    kind: ProfileKind,
    items: Sequence[Item],
    *,
    replace: bool,
    all_or_nothing: bool,
    client: str | None,
) -> list[Outcome]:
    """Store profiles in one transaction; one outcome for each item, in their order.

    With `replace` those that exist get the new document, if it is another one, else they are
    `taken`. With
    `all_or_nothing`, one that is refused undoes all: `NotAllStored`.
    """
    outcomes, documents = {}, []
    for item in items:
        try:
            documents.append((item.line, _document(kind, item)))
        except InvalidInput as refused:
            outcomes[item.line] = Outcome(item.line, item.result, errors=refused.errors)
    with database.writing() as session:
        # By name, so that two of these at once wait for one another and never in a circle.
        for line, document in sorted(documents, key=lambda each: str(each[1]["name"])):
            outcomes[line] = _store(session, kind, line, document, replace, client)
        found = [outcomes[item.line] for item in items]
        if all_or_nothing and not all(each.stored for each in found):
            raise NotAllStored(found)
    return found


def exported(database: Database, kind: ProfileKind) -> Iterator[Mapping[str, Any]]:
    """Every profile by name, as the body that would make it; a page at a time, so that no
    transaction lasts as long as the reader takes."""
    cursor = None
    while True:
        page, cursor = kind.page(database, PAGE, cursor, {})
        yield from (kind.body(profile.document) for profile in page)
        if cursor is None:
            return


def _document(kind: ProfileKind, item: Item) -> dict[str, Any]:
    if item.body is None:
        raise InvalidInput(*item.errors)
    return kind.normalise(item.body)


def _store(
    session: Any,
    kind: ProfileKind,
    line: int,
    document: dict[str, Any],
    replace: bool,
    client: str | None,
) -> Outcome:
    name = document["name"]
    try:
        present = _present(session, kind, name) if replace else None
        if present is None:
            profile = kind.store.create(session, document, client=client)
            return Outcome(line, "created", name, profile.version)
        if json.loads(json.dumps(document)) == present.document:
            # Nobody has written it: a catalogue entry goes on following the catalogue.
            return Outcome(line, "unchanged", name, present.version)
        profile = kind.store.replace(session, name, document, present.version, client=client)
        return Outcome(line, "replaced", name, profile.version)
    except NameTaken as taken:
        detail = f"The name is taken by {taken.name!r}."
    except StaleVersion:
        detail = "Somebody else has just changed this profile."
    return Outcome(line, "taken", errors=[FieldError("/name", detail, given=name)])


def _present(session: Any, kind: ProfileKind, name: str) -> StoredProfile | None:
    """The profile of that very name; one that has it as an alias is another."""
    found: StoredProfile | None = kind.store.get_many(session, [name]).get(name)
    return found if found is not None and found.name == name else None
