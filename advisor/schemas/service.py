"""What the service says of itself."""

from __future__ import annotations

from advisor.schemas.base import Answer
from advisor.schemas.fields import Choice, Text


class LiveAnswer(Answer):
    """The process answers."""

    status = Choice("", ("ok",))
    version = Text("Version of the service.")


class ReadyAnswer(Answer):
    """The service can work."""

    status = Choice("", ("ready",))
