"""Hardware and model profiles: documents under a name, with a version that guards every change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlalchemy import (
    Column,
    FromClause,
    Row,
    Select,
    Table,
    bindparam,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from advisor.store import changes
from advisor.store.changes import ProfileChange
from advisor.store.engine import is_unique_violation
from advisor.store.errors import NameTaken, NotFound, StaleVersion
from advisor.store.ids import new_id
from advisor.store.paging import Listing
from advisor.store.tables import HardwareProfileRow, ModelNameRow, ModelProfileRow

Document = dict[str, Any]
Origin = Literal["catalog", "user"]


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """A profile as it stands in the database; `document` is its API form."""

    name: str
    document: Document
    version: int
    origin: Origin
    created_at: datetime
    updated_at: datetime


class Profiles:
    """The profiles of one kind.

    Statements are built on the tables rather than on mapped objects: half the time per lookup, and
    no copy of a row that another transaction has changed meanwhile.
    """

    def __init__(
        self,
        kind: str,
        table: Table,
        filter_column: Column[str],
        filter_value: Callable[[Document], str],
    ) -> None:
        self._kind = kind
        self._table = table
        self._filter_name = filter_column.name
        self._filter_value = filter_value
        self._live = ~table.c.deleted
        self._columns = [table.c[name] for name in StoredProfile.__slots__]
        self._look_up_in(table, table.c.name)
        self._listing = Listing(
            name=table.name,
            columns=self._columns,
            key=table.c.name,
            filters={filter_column.name: filter_column},
            condition=self._live,
        )

    def _look_up_in(self, source: FromClause, asked: Column[str]) -> None:
        """Prepare the look-ups of live profiles by the names in `asked`."""
        found = select(asked.label("asked"), *self._columns).select_from(source).where(self._live)
        self._one = found.where(asked == bindparam("name"))
        self._many = found.where(asked.in_(bindparam("names", expanding=True)))
        self._look_near_in(select(asked).select_from(source).where(self._live), asked)

    def _look_near_in(self, names: Select[Any], asked: Column[str]) -> None:
        """Prepare the look-ups of the names beside another one."""
        self._names_before = names.where(asked < bindparam("near")).order_by(asked.desc())
        self._names_from = names.where(asked >= bindparam("near")).order_by(asked)

    def get(self, session: Session, name: str) -> StoredProfile:
        """The profile called `name`, in any case. Raises `NotFound`."""
        row = session.execute(self._one, {"name": name.lower()}).one_or_none()
        if row is None:
            raise NotFound(name)
        return _stored(row)

    def get_many(self, session: Session, names: Iterable[str]) -> dict[str, StoredProfile]:
        """The profiles that exist of those called `names`, in any case, by what was asked for."""
        asked = {name: name.lower() for name in names}
        rows = session.execute(self._many, {"names": sorted(set(asked.values()))})
        found = {row.asked: _stored(row) for row in rows}
        return {name: found[label] for name, label in asked.items() if label in found}

    def names(self, session: Session, near: str = "", most: int = 500) -> list[str]:
        """What profiles may be called, sorted: at most `most` before `near`, as many from it."""
        # A name has no other characters, and a database may refuse them.
        values = {"near": "".join(c for c in near.lower() if " " <= c <= "~")}
        before = session.scalars(self._names_before.limit(most), values).all()
        return [*reversed(before), *session.scalars(self._names_from.limit(most), values)]

    def page(
        self,
        session: Session,
        limit: int,
        cursor: str | None = None,
        filters: Mapping[str, str] | None = None,
    ) -> tuple[list[StoredProfile], str | None]:
        """At most `limit` profiles by name, and the cursor of the next page (None at the end).

        Raises `BadCursor`.
        """
        rows, next_cursor = self._listing.page(session, limit, cursor, filters)
        return [_stored(row) for row in rows], next_cursor

    def create(
        self,
        session: Session,
        document: Document,
        origin: Origin = "user",
        client: str | None = None,
    ) -> StoredProfile:
        """Store a new profile under the name in `document`.

        A deleted profile of that name comes back with the new document and a higher version. The
        history names the `client`, as it does of every change. Raises `NameTaken`, after which the
        session can still be used.
        """
        now = datetime.now(UTC)
        values = self._derived(document) | {
            "origin": origin,
            "deleted": False,
            "created_at": now,
            "updated_at": now,
        }
        if origin == "catalog":
            values["catalogued"] = True
        with self._claiming(session, document):
            version = self._revive(session, document["name"], values)
            if version is None:
                version = 1
                first = {"name": document["name"], "version": 1, "catalogued": False}
                session.execute(insert(self._table).values(first | values))
            self._claim_names(session, document)
        created = StoredProfile(document["name"], document, version, origin, now, now)
        self._record(session, "created", created, client)
        return created

    def replace(
        self,
        session: Session,
        name: str,
        document: Document,
        expected_version: int,
        origin: Origin = "user",
        client: str | None = None,
    ) -> StoredProfile:
        """Give the profile `name` a new document, if it still stands at `expected_version`.

        Of several at once, one succeeds. Raises `NotFound`, `StaleVersion`, and `NameTaken` when
        another profile holds an alias of the document; the session can be used after each.
        ValueError when the document has another name.
        """
        if document["name"] != name:
            raise ValueError(f"the document of {name!r} is named {document['name']!r}")
        values = self._derived(document) | {"origin": origin}
        with self._claiming(session, document):
            row = self._change(session, name, expected_version, values)
            self._claim_names(session, document)
        replaced = StoredProfile(
            name, document, row.version, origin, row.created_at, row.updated_at
        )
        self._record(session, "replaced", replaced, client)
        return replaced

    def delete(
        self, session: Session, name: str, expected_version: int, client: str | None = None
    ) -> None:
        """Delete the profile `name`, if it still stands at `expected_version`.

        Raises `NotFound` and `StaleVersion`.
        """
        row = self._change(session, name, expected_version, {"deleted": True, "document": {}})
        self._release_names(session, name)
        gone = StoredProfile(name, {}, row.version, "user", row.created_at, row.updated_at)
        self._record(session, "deleted", gone, client)

    def shipped_state(self, session: Session) -> dict[str, Row[*tuple[Any, ...]]]:
        """Every row by name, tombstones included, with what a seed decides by."""
        t = self._table.c
        rows = session.execute(
            select(t.name, t.version, t.origin, t.catalogued, t.deleted, t.document)
        )
        return {row.name: row for row in rows}

    def without_taken_aliases(self, _session: Session, document: Document) -> Document:
        """The document without the aliases that another profile holds."""
        return document

    def _record(
        self, session: Session, change: str, profile: StoredProfile, client: str | None
    ) -> None:
        """Add a change that has just been made to the history."""
        changes.record(
            session,
            ProfileChange(
                id=new_id(),
                changed_at=profile.updated_at,
                kind=self._kind,
                name=profile.name,
                version=profile.version,
                change=change,
                origin=profile.origin,
                client=client,
                document=profile.document or None,
            ),
        )

    def _derived(self, document: Document) -> dict[str, Any]:
        return {"document": document, self._filter_name: self._filter_value(document)}

    def _revive(self, session: Session, name: str, values: Mapping[str, Any]) -> int | None:
        """Turn the tombstone of `name` into a profile; its version, or None if there is none."""
        t = self._table.c
        revived = (
            update(self._table)
            .where(t.name == name, t.deleted)
            .values(version=t.version + 1, **values)
            .returning(t.version)
        )
        version: int | None = session.scalar(revived)
        return version

    def _change(
        self, session: Session, name: str, expected_version: int, values: Mapping[str, Any]
    ) -> Row[Any]:
        """The one guarded write: atomic, since the database compares the version as it writes."""
        t = self._table.c
        changed = session.execute(
            update(self._table)
            .where(t.name == name, t.version == expected_version, self._live)
            .values(version=t.version + 1, updated_at=datetime.now(UTC), **values)
            .returning(t.version, t.created_at, t.updated_at)
        ).one_or_none()
        if changed is not None:
            return changed
        current = session.scalar(select(t.version).where(t.name == name, self._live))
        raise NotFound(name) if current is None else StaleVersion(current)

    @contextmanager
    def _claiming(self, session: Session, document: Document) -> Iterator[None]:
        """A savepoint in which a name that is in use becomes `NameTaken`."""
        try:
            with session.begin_nested():
                yield
        except IntegrityError as error:
            if not is_unique_violation(error):
                raise
            raise NameTaken(self._holder(session, document)) from error

    def _holder(self, _session: Session, document: Document) -> str:
        """The profile that holds a name which `document` claims."""
        return cast("str", document["name"])

    def _claim_names(self, session: Session, document: Document) -> None:
        """Make the profile known by what its document calls it, and by nothing else."""

    def _release_names(self, session: Session, name: str) -> None:
        """Give up everything that the profile `name` is called."""


class ModelProfiles(Profiles):
    """Model profiles, which are also found by the `aliases` in their documents."""

    def __init__(self) -> None:
        table = _table(ModelProfileRow)
        super().__init__(
            "model", table, table.c.family, lambda document: document["architecture"]["family"]
        )
        self._labels = _table(ModelNameRow)
        joined = self._labels.join(table, table.c.name == self._labels.c.model)
        self._look_up_in(joined, self._labels.c.label)
        # Without the join: only models that are there hold labels.
        self._look_near_in(select(self._labels.c.label), self._labels.c.label)

    def without_taken_aliases(self, session: Session, document: Document) -> Document:
        """The document without the aliases that another model holds."""
        holders = self._holders(session, document)
        name = document["name"]
        free = [a for a in document["aliases"] if holders.get(a.lower(), name) == name]
        return document | {"aliases": free}

    def _holder(self, session: Session, document: Document) -> str:
        holders = self._holders(session, document)
        name = super()._holder(session, document)
        others = [model for label, model in sorted(holders.items()) if model != name]
        return next(iter(others), name)

    def _holders(self, session: Session, document: Document) -> dict[str, str]:
        """The model that holds each label of `document`, where there is one."""
        t = self._labels.c
        labels = _labels_of(document)
        rows = session.execute(select(t.label, t.model).where(t.label.in_(labels)))
        return {row.label: row.model for row in rows}

    def _claim_names(self, session: Session, document: Document) -> None:
        t = self._labels.c
        name, wanted = document["name"], _labels_of(document)
        held = set(session.scalars(select(t.label).where(t.model == name)))
        if dropped := held - wanted:
            session.execute(delete(self._labels).where(t.label.in_(dropped)))
        # In one order, so that two sessions that claim the same labels cannot block each other.
        new = [{"label": label, "model": name} for label in sorted(wanted - held)]
        if new:
            session.execute(insert(self._labels), new)

    def _release_names(self, session: Session, name: str) -> None:
        session.execute(delete(self._labels).where(self._labels.c.model == name))


def _labels_of(document: Document) -> set[str]:
    """In lower case: people write the name of a model in any."""
    return {label.lower() for label in (document["name"], *document["aliases"])}


def _table(row: type[Any]) -> Table:
    return cast("Table", row.__table__)


def _stored(row: Row[Any]) -> StoredProfile:
    return StoredProfile(*(getattr(row, name) for name in StoredProfile.__slots__))


def _hardware_profiles() -> Profiles:
    table = _table(HardwareProfileRow)
    return Profiles("hardware", table, table.c.vendor, lambda document: document["vendor"])


hardware_profiles = _hardware_profiles()
model_profiles = ModelProfiles()
