"""The history of profiles."""

from __future__ import annotations

from advisor.schemas.base import Answer
from advisor.schemas.common import ORIGINS, AnyJson, PageQuery, page_of
from advisor.schemas.fields import Choice, Text, Whole

KINDS = ("hardware", "model")
CHANGES = ("created", "replaced", "deleted")


class ProfileChangeAnswer(Answer):
    """One change of one profile."""

    id = Text()
    changed_at = Text("UTC, RFC 3339.")
    kind = Choice("", KINDS)
    name = Text("Name of the profile.")
    version = Whole("Its version since.")
    change = Choice("", CHANGES)
    origin = Choice("`catalog`: the service's own catalogue was loaded; else `user`.", ORIGINS)
    client = Text("Name of the API key it came with; null: it came with none.", allow_none=True)
    document = AnyJson("The profile since, as it is stored; null: it is deleted.")


ProfileChangePage: type[Answer] = page_of(ProfileChangeAnswer, "ProfileChangePage")


class ProfileChangeQuery(PageQuery):
    """Which changes to list."""

    kind = Choice("Only of profiles of this kind.", KINDS, load_default=None, allow_none=False)
    name = Text("Only of the profile of this name.", 100, load_default=None, allow_none=False)
