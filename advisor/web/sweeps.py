"""`/v1/sweeps`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from itertools import chain, islice
from typing import Any, cast

from flask import Flask, Response, current_app, url_for

from advisor.schemas.sweeps import (
    ResultsQuery,
    SweepAnswer,
    SweepBody,
    SweepDifferencePage,
    SweepDifferenceQuery,
    SweepPage,
    SweepQuery,
    SweepRowPage,
    SweepRowQuery,
    loaded_sweep,
)
from advisor.service import sweeps
from advisor.service.clock import rfc3339
from advisor.service.database import Database
from advisor.service.sweep_runner import SweepRunner
from advisor.service.sweeps import Enqueue, State
from advisor.store.sweeps import StoredSweep
from advisor.sweeps.formats import FORMATS
from advisor.sweeps.rows import COLUMNS
from advisor.web import examples
from advisor.web.answers import database, json_answer, page_answer
from advisor.web.bulk import CSV, JSON_LINES
from advisor.web.spec import ETAG, IF_NONE_MATCH, LOCATION, Resource

MEDIA_TYPES = {"jsonl": JSON_LINES, "csv": CSV, "parquet": "application/vnd.apache.parquet"}

blp = Resource(
    "sweeps", __name__, url_prefix="/v1/sweeps", description="Many plan requests as one job."
)


@dataclass(frozen=True)
class Sweeps:
    """How this application has sweeps answered."""

    runner: SweepRunner | None
    enqueue: Enqueue
    most_items: int

    def begin(self) -> None:
        """Answer what is open, if that is done here."""
        if self.runner is not None:
            self.runner.tell()

    def end(self) -> None:
        """Answer no more after the chunk at hand."""
        if self.runner is not None:
            self.runner.end()


def register(app: Flask, database: Database, most_items: int) -> None:
    """Let the application take sweeps of at most so many questions: on SQLite it answers them
    itself, on PostgreSQL workers do (`advisor.jobs`)."""
    if database.is_embedded:
        # It looks for sweeps that are open: nothing is kept besides.
        ours = Sweeps(SweepRunner(database, loaded_sweep), lambda *_: None, most_items)
    else:
        # 0.2 s to import.
        from advisor.jobs.queue import enqueue

        ours = Sweeps(None, enqueue, most_items)
    app.extensions["advisor-sweeps"] = ours


@blp.route("", methods=["POST"])
@blp.operation(
    "create_sweep", "Plan many questions", SweepAnswer, status=HTTPStatus.ACCEPTED,
    body=SweepBody, examples=examples.SWEEPS, headers=ETAG | LOCATION,
)  # fmt: skip
def create(body: dict[str, Any]) -> Response:
    """Takes the questions, to be answered one after the other. The same request, while neither the
    profiles it names nor the planner have changed, is the same sweep: it is told how far it is."""
    ours = _sweeps()
    sweep, _ = sweeps.create(database(), body, most_items=ours.most_items, enqueue=ours.enqueue)
    return _accepted(sweep)


@blp.route("")
@blp.operation(
    "list_sweeps", "List sweeps", SweepPage, query=SweepQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_all(query: dict[str, Any]) -> Response:
    """Newest first."""
    page = sweeps.page(database(), query["limit"], query["cursor"])
    return page_answer(*page, show=_summary)


@blp.route("/<sweep_id>")
@blp.operation(
    "get_sweep", "Read how far a sweep is", SweepAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def read(sweep_id: str) -> Response:
    """Its state, its rate and when it will have ended at that."""
    return json_answer(_shown(sweeps.read(database(), sweep_id)))


@blp.route("/<sweep_id>/rows")
@blp.operation(
    "list_sweep_rows", "Read the rows of a sweep", SweepRowPage, query=SweepRowQuery,
    headers=ETAG, errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_rows(query: dict[str, Any], sweep_id: str) -> Response:
    """In the order of the questions. While the sweep goes on, the last page there is has a
    `next_cursor` too: asked again later, it goes on from there."""
    found, cursor = sweeps.rows_page(database(), sweep_id, query["limit"], query["cursor"])
    return page_answer(found, cursor, show=lambda row: row)


@blp.route("/<sweep_id>/differences")
@blp.operation(
    "list_sweep_differences", "Compare two sweeps", SweepDifferencePage,
    query=SweepDifferenceQuery, headers=ETAG,
    errors=(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND), parameters=(IF_NONE_MATCH,),
)  # fmt: skip
def list_differences(query: dict[str, Any], sweep_id: str) -> Response:
    """The questions whose rows differ from those of another sweep of the same request, column by
    column. A page can be empty and have a `next_cursor`: so far nothing differs."""
    found, cursor = sweeps.differences_page(
        database(), sweep_id, query["against"], query["limit"], query["cursor"]
    )
    return page_answer(found, cursor, show=lambda each: each)


@blp.route("/<sweep_id>/results")
@blp.operation(
    "get_sweep_results", "Read all rows of a sweep", None, query=ResultsQuery,
    errors=(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_IMPLEMENTED), texts=tuple(MEDIA_TYPES.values()),
)  # fmt: skip
def results(query: dict[str, Any], sweep_id: str) -> Response:
    """Every row there is by now, in the order of the questions, as JSON Lines, or as CSV or Parquet
    by `format`; those of questions that are not answered yet are missing."""
    chunks = sweeps.rows(database(), sweep_id)
    # The first is read before anything is sent, so that what cannot be read is an error.
    first = list(islice(chunks, 1))
    form = query["format"]
    pieces = FORMATS[form](chain(first, chunks), COLUMNS)
    answer = Response(pieces, content_type=MEDIA_TYPES[form])
    answer.headers["Content-Disposition"] = f'attachment; filename="sweep-{sweep_id}.{form}"'
    return answer


@blp.route("/<sweep_id>/cancellation", methods=["POST"])
@blp.operation(
    "cancel_sweep", "Cancel a sweep", SweepAnswer,
    headers=ETAG, errors=(HTTPStatus.NOT_FOUND,), scope="write", sent_again=True,
)  # fmt: skip
def cancel(sweep_id: str) -> Response:
    """No further question is answered; the rows there are stay. One that has ended stays as it
    is. The same request is a new sweep from then on."""
    sweeps.cancel(database(), sweep_id)
    return json_answer(_shown(sweeps.read(database(), sweep_id)))


@blp.route("/<sweep_id>/re-evaluation", methods=["POST"])
@blp.operation(
    "re_evaluate_sweep", "Make a sweep again", SweepAnswer, status=HTTPStatus.ACCEPTED,
    headers=ETAG | LOCATION, errors=(HTTPStatus.NOT_FOUND,), scope="write", sent_again=True,
)  # fmt: skip
def re_evaluate(sweep_id: str) -> Response:
    """The same questions about the profiles and the planner of now, as a sweep of its own; where
    neither has changed, it is the sweep there is."""
    ours = _sweeps()
    sweep, _ = sweeps.re_evaluate(
        database(), sweep_id, loaded_sweep, most_items=ours.most_items, enqueue=ours.enqueue
    )
    return _accepted(sweep)


def _sweeps() -> Sweeps:
    return cast("Sweeps", current_app.extensions["advisor-sweeps"])


def _accepted(sweep: StoredSweep) -> Response:
    """The sweep as it is now, and where to ask for it; it begins."""
    answer = json_answer(
        _shown(sweeps.read(database(), sweep.id)), HTTPStatus.ACCEPTED,
        location=url_for(".read", sweep_id=sweep.id),
    )  # fmt: skip
    _sweeps().begin()
    return answer


def _summary(state: State) -> dict[str, Any]:
    return {
        "id": state.sweep.id,
        "created_at": rfc3339(state.sweep.created_at),
        "state": state.name,
        "total": state.sweep.total,
        "done": state.progress.done,
        "planner_version": state.sweep.planner_version,
    }


def _shown(state: State) -> dict[str, Any]:
    sweep = state.sweep
    assert isinstance(sweep, StoredSweep)
    profiles = [
        {"kind": kind, "named": named, "name": each["name"], "version": each["version"]}
        for kind, found in sweep.profiles.items()
        for named, each in found.items()
    ]
    return _summary(state) | {
        "refused": state.progress.refused,
        "rate_per_s": None if state.rate_per_s is None else float(f"{state.rate_per_s:.3g}"),
        "estimated_end": _moment(state.estimated_end),
        "finished_at": _moment(state.finished_at),
        "re_evaluation_of": sweep.re_evaluation_of,
        "profiles": profiles,
        "coefficients_version": sweep.coefficients_version,
        "request": sweep.request,
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else rfc3339(at)
