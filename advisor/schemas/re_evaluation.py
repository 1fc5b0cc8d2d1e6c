"""A plan made again, beside what it was."""

from __future__ import annotations

from advisor.schemas.base import Answer
from advisor.schemas.common import AnyJson
from advisor.schemas.containers import ListOf, Section
from advisor.schemas.fields import Flag, Text, Whole


class EvaluationAnswer(Answer):
    """One of the two plans."""

    id = Text("The whole plan is at `/v1/plans/{id}`.")
    created_at = Text("UTC, RFC 3339.")
    planner_version = Text("Version of the service that answered.")
    coefficients_version = Text("null: the plan is older than that.", allow_none=True)


class ProfileThenAndNowAnswer(Answer):
    """A profile that the plan names."""

    pointer = Text("Where the request names it.")
    name = Text()
    version_then = Whole("null: not known, or brought along in the request.", allow_none=True)
    version_now = Whole("null: brought along in the request.", allow_none=True)


class DifferenceAnswer(Answer):
    """A value of the answer that is another one now."""

    pointer = Text("JSON pointer (RFC 6901) into the plans.")
    then = AnyJson("null: not there.")
    now = AnyJson("null: not there.")


class ReEvaluationAnswer(Answer):
    """What has changed since a plan was made, and what that changes in the recommendation."""

    then = Section(EvaluationAnswer, "The plan as it was made.")
    now = Section(EvaluationAnswer, "The new plan, made of the same request.")
    same = Flag("Whether the recommendation is the same, to the last figure.")
    profiles = ListOf(Section(ProfileThenAndNowAnswer), "The profiles the request names.")
    differences = ListOf(
        Section(DifferenceAnswer), "In `recommended` and `reason`; at most 200 of them."
    )
