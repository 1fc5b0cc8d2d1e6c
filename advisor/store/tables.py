"""The tables, as typed declarations. The migrations build the same schema (a test compares)."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, CheckConstraint, ForeignKey, Index, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, declared_attr, mapped_column
from sqlalchemy.schema import SchemaItem

from advisor.store.types import UtcDateTime, key_text

NAME_LENGTH = 100
ALIAS_LENGTH = 200
ID_LENGTH = 32
DIGEST_LENGTH = 64
"""Hexadecimal digits of SHA-256."""
IDEMPOTENCY_KEY_LENGTH = 255
WORD_LENGTH = 100
"""Short words of closed or nearly closed sets: vendors, families, objectives, versions."""


class Base(DeclarativeBase):
    """All tables; constraints are named by rule so that migrations can address them."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
    # `JSON`, not `JSONB`: it keeps the order of keys and every escaped character.
    type_annotation_map: ClassVar[dict[Any, Any]] = {dict[str, Any]: JSON, datetime: UtcDateTime}


class ProfileColumns:
    """What hardware and model profiles have in common.

    `document` is the profile as the API shows it. `origin` says who wrote that text; `catalogued`
    that the catalogue has shipped this name, whoever wrote the text since. A `deleted` row is a
    tombstone without its document: it keeps a catalogue entry deleted, and lets the version go on
    counting, so that an `If-Match` from before the deletion never matches what came after.
    """

    name: Mapped[str] = mapped_column(key_text(NAME_LENGTH), primary_key=True)
    document: Mapped[dict[str, Any]]
    version: Mapped[int]
    origin: Mapped[str] = mapped_column(String(10))
    catalogued: Mapped[bool]
    deleted: Mapped[bool]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


def _profile_constraints(filter_column: str) -> tuple[SchemaItem, ...]:
    """Checks, and the indexes that a page is read from: equalities first, then the sort key."""
    return (
        CheckConstraint(f"length(name) BETWEEN 1 AND {NAME_LENGTH}", "name_length"),
        CheckConstraint("version >= 1", "version_positive"),
        CheckConstraint("origin IN ('catalog', 'user')", "origin_known"),
        Index(None, "deleted", "name"),
        Index(None, "deleted", filter_column, "name"),
    )


class HardwareProfileRow(ProfileColumns, Base):
    """A hardware profile; `vendor` is derived from the document."""

    __tablename__ = "hardware_profiles"

    vendor: Mapped[str] = mapped_column(key_text(WORD_LENGTH))

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805
        return _profile_constraints("vendor")


class ModelProfileRow(ProfileColumns, Base):
    """A model profile; `family` is derived from the document."""

    __tablename__ = "model_profiles"

    family: Mapped[str] = mapped_column(key_text(WORD_LENGTH))

    @declared_attr.directive
    def __table_args__(cls) -> tuple[SchemaItem, ...]:  # noqa: N805
        return _profile_constraints("family")


class ModelNameRow(Base):
    """What a model that is not deleted may be called: its name and each alias, one row each, in
    lower case.

    Names and aliases share the primary key, so the database itself lets no alias shadow a name.
    """

    __tablename__ = "model_names"

    label: Mapped[str] = mapped_column(key_text(ALIAS_LENGTH), primary_key=True)
    model: Mapped[str] = mapped_column(
        key_text(NAME_LENGTH), ForeignKey("model_profiles.name"), index=True
    )

    __table_args__ = (
        CheckConstraint(f"length(label) BETWEEN 1 AND {ALIAS_LENGTH}", "label_length"),
    )


class PlanRow(Base):
    """A plan that was answered; `answer` is the text of the JSON that was sent."""

    __tablename__ = "plans"

    id: Mapped[str] = mapped_column(key_text(ID_LENGTH), primary_key=True)
    created_at: Mapped[datetime]
    model: Mapped[str] = mapped_column(key_text(NAME_LENGTH))
    objective: Mapped[str] = mapped_column(String(WORD_LENGTH))
    planner_version: Mapped[str] = mapped_column(String(WORD_LENGTH))
    request: Mapped[dict[str, Any]]
    answer: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index(None, "model", "id"),)


class AllocationRow(Base):
    """An allocation that was answered; `answer` is the text of the JSON that was sent."""

    __tablename__ = "allocations"

    id: Mapped[str] = mapped_column(key_text(ID_LENGTH), primary_key=True)
    created_at: Mapped[datetime]
    objective: Mapped[str] = mapped_column(String(WORD_LENGTH))
    status: Mapped[str] = mapped_column(key_text(WORD_LENGTH))
    planner_version: Mapped[str] = mapped_column(String(WORD_LENGTH))
    request: Mapped[dict[str, Any]]
    answer: Mapped[str] = mapped_column(Text)

    __table_args__ = (Index(None, "status", "id"),)


class SweepRow(Base):
    """Many plan requests as one job.

    `digest` tells one that is the same; null where it was cancelled. `profiles` are those named in
    the request as they were when it was made. The first `taken` questions are in chunks; it is
    `open` until the last is answered, or it was cancelled.
    """

    __tablename__ = "sweeps"

    id: Mapped[str] = mapped_column(key_text(ID_LENGTH), primary_key=True)
    created_at: Mapped[datetime]
    digest: Mapped[str | None] = mapped_column(key_text(DIGEST_LENGTH), unique=True)
    planner_version: Mapped[str] = mapped_column(String(WORD_LENGTH))
    coefficients_version: Mapped[str] = mapped_column(String(WORD_LENGTH))
    request: Mapped[dict[str, Any]]
    profiles: Mapped[dict[str, Any]]
    re_evaluation_of: Mapped[str | None] = mapped_column(key_text(ID_LENGTH))
    total: Mapped[int]
    taken: Mapped[int]
    open: Mapped[bool]
    cancelled_at: Mapped[datetime | None]

    __table_args__ = (
        CheckConstraint("total >= 1", "total_positive"),
        CheckConstraint("taken BETWEEN 0 AND total", "taken_bounded"),
        Index(None, "open", "id"),
    )


class SweepChunkRow(Base):
    """So many `questions` of a sweep, from the number `first`, that were taken together.

    Who has taken them has them until `taken_until`; then somebody else may, which `attempts`
    counts. `rows` are the answers, a line of JSON each, applied once and for all.
    """

    __tablename__ = "sweep_chunks"

    sweep_id: Mapped[str] = mapped_column(
        key_text(ID_LENGTH), ForeignKey("sweeps.id"), primary_key=True
    )
    first: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    questions: Mapped[int]
    attempts: Mapped[int]
    taken_at: Mapped[datetime]
    taken_until: Mapped[datetime]
    applied_at: Mapped[datetime | None]
    refused: Mapped[int | None]
    spent_ms: Mapped[int | None]
    rows: Mapped[str | None] = mapped_column(Text)


class ProfileChangeRow(Base):
    """A change of a profile, with the document it has since (none where it was deleted)."""

    __tablename__ = "profile_changes"

    id: Mapped[str] = mapped_column(key_text(ID_LENGTH), primary_key=True)
    changed_at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(10))
    name: Mapped[str] = mapped_column(key_text(NAME_LENGTH))
    version: Mapped[int]
    change: Mapped[str] = mapped_column(String(10))
    origin: Mapped[str] = mapped_column(String(10))
    client: Mapped[str | None] = mapped_column(key_text(NAME_LENGTH))
    # Without a document the column is NULL, not the JSON text `null`.
    document: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    __table_args__ = (Index(None, "name", "id"),)


class ApiKeyRow(Base):
    """An API key, known by its digest alone; keys of one `name` are one client's.

    A key works until `ends_at`: for ever where that is null, no more once it has been revoked.
    """

    __tablename__ = "api_keys"

    digest: Mapped[str] = mapped_column(key_text(DIGEST_LENGTH), primary_key=True)
    name: Mapped[str] = mapped_column(key_text(NAME_LENGTH), index=True)
    scope: Mapped[str] = mapped_column(String(10))
    created_at: Mapped[datetime]
    ends_at: Mapped[datetime | None]

    __table_args__ = (CheckConstraint("scope IN ('read', 'write', 'admin')", "scope_known"),)


class KeptAnswerRow(Base):
    """The answer to a request that its client has given a key, to be given again.

    The row is claimed at the beginning of the transaction that does what was asked; its `status`
    is 0 until the end of that, which nobody else sees.
    """

    __tablename__ = "idempotency_keys"

    client: Mapped[str] = mapped_column(key_text(NAME_LENGTH), primary_key=True)
    key: Mapped[str] = mapped_column(key_text(IDEMPOTENCY_KEY_LENGTH), primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST_LENGTH))
    created_at: Mapped[datetime] = mapped_column(index=True)
    status: Mapped[int]
    headers: Mapped[dict[str, Any]]
    body: Mapped[str] = mapped_column(Text)


class TerminologyCheckRow(Base):
    """A text that was checked, and the findings with the answers given to them so far."""

    __tablename__ = "terminology_checks"

    id: Mapped[str] = mapped_column(key_text(ID_LENGTH), primary_key=True)
    created_at: Mapped[datetime]
    request: Mapped[dict[str, Any]]
    answer: Mapped[dict[str, Any]]
