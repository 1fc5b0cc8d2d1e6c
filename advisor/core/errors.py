"""What the core raises: exceptions that carry the figures, so that any shell can word them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


class _Absent:
    """Marks a figure that an error does not have (`None` is a value that can be given)."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT = _Absent()


@dataclass(frozen=True)
class FieldError:
    """One field that cannot be accepted.

    `pointer` is a JSON pointer into the request, `detail` one sentence; `given`, `allowed` and
    `nearest` (the closest choice that would be accepted) are left out where they say nothing.
    """

    pointer: str
    detail: str
    given: Any = ABSENT
    allowed: Any = ABSENT
    nearest: Any = ABSENT

    def as_dict(self) -> dict[str, Any]:
        """The error as JSON-ready mapping, without the figures it does not have."""
        fields = {"pointer": self.pointer, "detail": self.detail}
        extras = {"given": self.given, "allowed": self.allowed, "nearest": self.nearest}
        return fields | {key: value for key, value in extras.items() if value is not ABSENT}

    def under(self, prefix: str) -> FieldError:
        """The same error seen from a document in which this one stands at `prefix`."""
        return FieldError(
            prefix + self.pointer, self.detail, self.given, self.allowed, self.nearest
        )


class InvalidInput(Exception):
    """The input breaks a rule of the domain; `errors` names each field at fault."""

    def __init__(self, *errors: FieldError) -> None:
        self.errors = errors
        super().__init__("; ".join(f"{e.pointer}: {e.detail}" for e in errors))

    def under(self, prefix: str) -> InvalidInput:
        """The same refusal with every pointer moved below `prefix`."""
        return InvalidInput(*(error.under(prefix) for error in self.errors))


def between(least: float, most: float) -> dict[str, float]:
    """What `allowed` says of a number with bounds."""
    return {"minimum": least, "maximum": most}


def nearest_name(given: str, known: Iterable[str]) -> str | _Absent:
    """The shortest known name that begins with `given`, else the shortest that has it as some of
    the parts between its hyphens, else the closest by spelling, if any is."""
    choices = {name.lower(): name for name in known}
    sought = given.lower()
    begun = [name for name in choices if name.startswith(sought)] if given else []
    begun = begun or [name for name in choices if f"-{sought}-" in f"-{name}-"]
    if begun:
        return choices[min(begun, key=len)]
    close = difflib.get_close_matches(sought, choices, n=1, cutoff=0.5)
    return choices[close[0]] if close else ABSENT


def unknown_choice(pointer: str, given: str, known: Iterable[str], what: str) -> FieldError:
    """The error for a name that is not one of a known set."""
    names = sorted(known)
    return FieldError(
        pointer,
        f"{what} {given!r} is not known.",
        given=given,
        allowed=names if len(names) <= 40 else ABSENT,
        nearest=nearest_name(given, names),
    )
