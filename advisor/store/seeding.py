"""Loading the shipped catalogue without touching what a user has changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy.orm import Session

from advisor.store.errors import NameTaken, NotFound, StaleVersion
from advisor.store.profiles import Document, Profiles


@dataclass(frozen=True)
class SeedCounts:
    """What became of the shipped documents.

    `kept`: what is stored stays as it is, because it is up to date, a user wrote it, or a user's
    profile holds the name. `deleted`: it was deleted and stays so.
    """

    added: int = 0
    updated: int = 0
    kept: int = 0
    deleted: int = 0


def seed(session: Session, profiles: Profiles, documents: Iterable[Document]) -> SeedCounts:
    """Bring the catalogue's profiles up to the shipped `documents` (API forms with their names).

    Missing ones are added and those that no user has written are updated; an alias that another
    profile holds is left to it. Two processes may do this at once, beside users.
    """
    stored = profiles.shipped_state(session)
    counts = {"added": 0, "updated": 0, "kept": 0, "deleted": 0}
    new = []
    # Every process in the same order: they wait for one another and never in a circle. Updates come
    # first, so that an alias they give up is free for a new profile.
    for document in sorted(documents, key=lambda d: str(d["name"])):
        row = stored.get(document["name"])
        if row is None or (row.deleted and not row.catalogued):
            new.append(document)
        elif row.deleted:
            counts["deleted"] += 1
        elif row.origin == "user":
            counts["kept"] += 1
        else:
            counts[_update(session, profiles, document, row.version, row.document)] += 1
    for document in new:
        counts[_add(session, profiles, document)] += 1
    return SeedCounts(**counts)


def _add(session: Session, profiles: Profiles, document: Document) -> str:
    try:
        profiles.create(session, profiles.without_taken_aliases(session, document), "catalog")
    except NameTaken:
        return "kept"
    return "added"


def _update(
    session: Session, profiles: Profiles, document: Document, version: int, current: Document
) -> str:
    shipped = profiles.without_taken_aliases(session, document)
    if json.loads(json.dumps(shipped)) == current:
        return "kept"
    try:
        profiles.replace(session, document["name"], shipped, version, "catalog")
    except (NameTaken, NotFound, StaleVersion):
        # Someone else was there first: a user, or another process with the same catalogue.
        return "kept"
    return "updated"
