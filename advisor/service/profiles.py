"""Hardware and model profiles: list, read, create, replace, delete."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from advisor.core.errors import FieldError, InvalidInput
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.suspicions import price_warnings, suspicions
from advisor.service.database import Database
from advisor.service.errors import UnknownName
from advisor.store.errors import NotFound
from advisor.store.profiles import Profiles, StoredProfile, hardware_profiles, model_profiles

_LOOKS_LIKE_A_NAME = re.compile(r"[\x21-\x7e]{1,200}")


@dataclass(frozen=True)
class ProfileKind:
    """One kind of profile: where it is stored, what document a body becomes, what is to be
    warned of in a document, and what body would make it."""

    name: str
    store: Profiles
    normalise: Callable[[Mapping[str, Any]], dict[str, Any]]
    warnings: Callable[[Mapping[str, Any]], list[dict[str, str]]]
    body: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def page(
        self, database: Database, limit: int, cursor: str | None, filters: Mapping[str, str]
    ) -> tuple[list[StoredProfile], str | None]:
        """At most `limit` profiles and the cursor of the next page. Raises `BadCursor`."""
        with database.reading() as session:
            return self.store.page(session, limit, cursor, filters)

    def read(self, database: Database, name: str) -> StoredProfile:
        """The profile of that name. Raises `UnknownName`."""
        with database.reading() as session:
            self._refuse_impossible(session, name)
            try:
                return self.store.get(session, name)
            except NotFound:
                raise UnknownName(name, self.store.names(session, name)) from None

    def create(
        self, database: Database, body: Mapping[str, Any], client: str | None = None
    ) -> StoredProfile:
        """Store a new profile; the history names the `client`, as of every change.

        Raises `NameTaken` and `InvalidInput`.
        """
        document = self.normalise(body)
        with database.writing() as session:
            return self.store.create(session, document, client=client)

    def replace(
        self,
        database: Database,
        name: str,
        body: Mapping[str, Any],
        version: int,
        client: str | None = None,
    ) -> StoredProfile:
        """Put `body` in place of the profile `name`, if that still stands at `version`.

        Raises `UnknownName`, `StaleVersion`, `NameTaken` (an alias) and `InvalidInput`.
        """
        if body["name"] != name:
            detail = "A profile keeps its name: create another one under a new name."
            raise InvalidInput(FieldError("/name", detail, given=body["name"], allowed=[name]))
        document = self.normalise(body)
        with database.writing() as session:
            try:
                return self.store.replace(session, name, document, version, client=client)
            except NotFound:
                raise UnknownName(name, self.store.names(session, name)) from None

    def delete(
        self, database: Database, name: str, version: int, client: str | None = None
    ) -> None:
        """Delete the profile `name`, if it still stands at `version`.

        Raises `UnknownName` and `StaleVersion`.
        """
        with database.writing() as session:
            self._refuse_impossible(session, name)
            try:
                self.store.delete(session, name, version, client)
            except NotFound:
                raise UnknownName(name, self.store.names(session, name)) from None

    def _refuse_impossible(self, session: Any, name: str) -> None:
        """A name that nothing can have is not asked for: a database may refuse the text itself."""
        if not _LOOKS_LIKE_A_NAME.fullmatch(name):
            raise UnknownName(name, self.store.names(session, name))


def _hardware_document(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body itself, once the core has read it."""
    HardwareProfile.from_mapping(body)
    return dict(body)


def _model_document(body: Mapping[str, Any]) -> dict[str, Any]:
    return ModelProfile.from_mapping(body).as_document()


def _hardware_warnings(document: Mapping[str, Any]) -> list[dict[str, str]]:
    profile = HardwareProfile.from_mapping(document)
    return [*suspicions(profile), *price_warnings(profile)]


def _model_warnings(document: Mapping[str, Any]) -> list[dict[str, str]]:
    return list(document["warnings"])


def _model_body(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("name", "aliases", "architecture")}


HARDWARE = ProfileKind("hardware", hardware_profiles, _hardware_document, _hardware_warnings, dict)
MODELS = ProfileKind("models", model_profiles, _model_document, _model_warnings, _model_body)
