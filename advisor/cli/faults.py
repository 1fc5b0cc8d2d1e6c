"""How commands end when something is wrong: a message on standard error, never a traceback.

Exit codes: 2 for input that cannot be accepted, 1 for anything else that fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from advisor.config import BadSetting
from advisor.core.errors import ABSENT, FieldError, InvalidInput
from advisor.store.errors import DatabaseUnavailable

MOST_ALLOWED = 10
"""Choices that one line of an error lists."""

_BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most",
    "minimum_items": "at least", "maximum_items": "at most",
    "minimum_length": "at least", "maximum_length": "at most",
}  # fmt: skip
"""Words for the bounds that the API names."""


class Refused(click.ClickException):
    """Input that cannot be accepted; each line of the message names one fault."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the faults as they are, to standard error unless told otherwise."""
        click.echo(self.message, file=file, err=file is None)


class Commands(click.Group):
    """The commands, with what they raise turned into messages."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InvalidInput as refused:
            raise Refused("\n".join(map(sentence, refused.errors))) from None
        except BadSetting as bad:
            raise Refused(str(bad)) from None
        except DatabaseUnavailable as error:
            raise click.ClickException(f"The database cannot be used: {_cause(error)}") from None


def sentence(error: FieldError) -> str:
    """One fault in one line: where, what, and what would be accepted."""
    return f"{error.pointer or '/'}: {error.detail}{_hint(error)}"


def _hint(error: FieldError) -> str:
    if error.nearest is not ABSENT:
        return f" (nearest: {error.nearest})"
    if isinstance(error.allowed, Mapping):
        given = {key: bound for key, bound in error.allowed.items() if bound is not None}
        bounds = (f"{_BOUNDS.get(key, key)} {bound:.12g}" for key, bound in given.items())
        return f" (allowed: {', '.join(bounds)})"
    if isinstance(error.allowed, list):
        listed = [str(each) for each in error.allowed[:MOST_ALLOWED]]
        more = ["..."] if len(error.allowed) > MOST_ALLOWED else []
        return f" (allowed: {', '.join(listed + more)})"
    return ""


def _cause(error: DatabaseUnavailable) -> str:
    """The driver's own words; the statement and the library's advice around them left out."""
    return str(getattr(error.__cause__, "orig", None) or error.__cause__ or "it does not answer")
