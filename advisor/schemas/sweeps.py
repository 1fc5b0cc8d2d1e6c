"""Sweeps: a grid of questions, or a list of them, in; progress and rows of figures out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from marshmallow import ValidationError, post_load, validates_schema

from advisor.core.workload import OBJECTIVES, SLO_KEYS, Limits, Serving
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import AnyJson, PageQuery, page_of
from advisor.schemas.containers import Either, ListOf, MapOf, Section
from advisor.schemas.faults import fault, loaded
from advisor.schemas.fields import ApiField, Choice, Flag, JsonSchema, Number, Text, Whole
from advisor.schemas.hardware import HardwareProfileBody
from advisor.schemas.models import ModelProfileBody
from advisor.schemas.plans import PlanBody, kept_request, refuse_large_searches
from advisor.schemas.re_evaluation import DifferenceAnswer
from advisor.schemas.workload import LimitsBody, PrecisionBody, ServingBody, WorkloadBody
from advisor.sweeps.formats import FORMATS
from advisor.sweeps.grid import Grid, Listed, Questions
from advisor.sweeps.ranges import SCALES, Range, spanned
from advisor.sweeps.rows import COLUMNS, STATUSES

MOST_ENTRIES = 256
MOST_STEPS = 1_000
MOST_WORKLOADS = 2_000
"""Workloads that the ranges of a request span: reading more of them would take seconds."""
MOST_REQUESTS = 1_000
LARGEST_REQUEST = 1_048_576
"""Bytes of a request that is kept."""
STATES = ("queued", "running", "done", "cancelled")

SWEPT: Mapping[str, bool] = {
    "request_rate_per_s": False,
    "concurrency": True,
    "input_tokens": True,
    "output_tokens": True,
    "prefix_cache_hit": False,
}
"""Figures of a workload that may be swept, and whether they are whole numbers."""


class RangeBody(Closed):
    """Figures from one to another, both among them."""

    start = Number("The first.", 0, 1e9, data_key="from", required=True)
    stop = Number("The last.", 0, 1e9, data_key="to", required=True)
    steps = Whole("How many.", 1, MOST_STEPS, required=True)
    scale = Choice(
        "`linear`: evenly spaced; `log`: each by the same factor, from above 0.",
        SCALES, load_default="linear",
    )  # fmt: skip

    @validates_schema
    def logarithms_exist(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse factors from or to 0, and several steps that are one."""
        for key, name in (("from", "start"), ("to", "stop")):
            if data["scale"] == "log" and data[name] <= 0:
                wrong = fault("A logarithmic scale has figures above 0.", given=data[name],
                              allowed={"exclusiveMinimum": 0})  # fmt: skip
                raise ValidationError({key: wrong.messages})
        if (data["start"] == data["stop"]) != (data["steps"] == 1):
            detail = "One step is where `from` and `to` are equal, and only there."
            raise ValidationError({"steps": fault(detail, given=data["steps"]).messages})

    @post_load
    def as_range(self, data: dict[str, Any], **_: Any) -> Range:
        """The range."""
        return Range(**data)


class Swept(ApiField):
    """A figure of a workload, a list of them, or a range: documentation of `SweptWorkload`."""

    def __init__(self, name: str) -> None:
        self.single = WorkloadBody().fields[name]
        doc = self.single.metadata["description"]
        super().__init__(f"{doc} A list or a range is swept.", load_default=None)

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """Any of the three."""
        single = dict(converter.field2property(self.single))
        del single["description"]
        many = {"type": "array", "items": {"type": "number"}, "minItems": 1,
                "maxItems": MOST_STEPS, "uniqueItems": True}  # fmt: skip
        swept = [many, converter.resolve_nested_schema(RangeBody())]
        return {"anyOf": [*single.pop("anyOf", [single]), *swept]}


_SWEPT_DOC = """What arrives: exactly one of an open rate, a closed concurrency, or saturation;
figures may be swept."""
SweptWorkloadBody: type[WorkloadBody] = type(
    "SweptWorkloadBody",
    (WorkloadBody,),
    {"__doc__": _SWEPT_DOC, **{name: Swept(name) for name in SWEPT}},
)


class SweptWorkload(ApiField):
    """A workload whose figures may be lists or ranges, as every workload they span."""

    def _read(self, value: Any) -> list[Any]:
        if not isinstance(value, Mapping):
            raise fault("An object is expected.", given=value)
        figures, faults, single = {}, {}, WorkloadBody()
        for name, whole in SWEPT.items():
            try:
                found = _figures(value.get(name), whole=whole)
            except ValidationError as error:
                faults[name] = error.messages
            else:
                if found is not None:
                    figures[name] = found
        if faults:
            raise ValidationError(faults)
        count = math.prod(map(len, figures.values()))
        if count > MOST_WORKLOADS:
            raise _too_many(count)
        return [single.load(fields) for fields in spanned(value, figures)]

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """A reference to the workload."""
        reference: JsonSchema = converter.resolve_nested_schema(SweptWorkloadBody())
        return reference


class GridBody(Closed):
    """Every combination of what the lists hold is a plan request; the last list moves first."""

    models = ListOf(
        Either(Text("Name or alias of a model profile.", 200, shortest=1), ModelProfileBody),
        "Model profiles by name, or whole.",
        fewest=1, most=MOST_ENTRIES, unique=True, required=True,
    )  # fmt: skip
    hardware = ListOf(
        Either(Text("Name of a hardware profile.", 200, shortest=1), HardwareProfileBody),
        "Hardware profiles by name, or whole; each is planned on by itself.",
        fewest=1, most=MOST_ENTRIES, unique=True, required=True,
    )  # fmt: skip
    workloads = ListOf(
        SweptWorkload(), f"Loads; those that ranges span are {MOST_WORKLOADS} at most.",
        fewest=1, most=MOST_ENTRIES, unique=True, required=True,
    )  # fmt: skip
    slos = ListOf(
        MapOf(Number("[ms]", 1e-3, 1e9), keys=SLO_KEYS), "Upper bounds [ms].",
        fewest=1, most=MOST_ENTRIES, unique=True, load_default=lambda: [{}],
    )  # fmt: skip
    precisions = ListOf(
        Section(PrecisionBody), "Number formats; several within one are chosen from.",
        fewest=1, most=MOST_ENTRIES, unique=True,
        load_default=lambda: [{"weights": [], "kv_cache": []}],
    )  # fmt: skip
    objectives = ListOf(
        Choice("What a plan is chosen by.", OBJECTIVES), "What plans are chosen by.",
        fewest=1, unique=True, load_default=lambda: ["cost"],
    )  # fmt: skip
    limits = Section(LimitsBody, "Bounds on every search.", load_default=Limits)
    serving = Section(ServingBody, "The engine.", load_default=Serving)

    @validates_schema
    def bounded(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse workloads that are too many together, and searches that are too large."""
        for precision in data["precisions"]:
            refuse_large_searches(data["limits"], precision, devices=1)
        count = sum(map(len, data["workloads"]))
        if count > MOST_WORKLOADS:
            raise ValidationError({"workloads": _too_many(count).messages})

    @post_load
    def as_grid(self, data: dict[str, Any], **_: Any) -> Grid:
        """The questions."""
        axes = {
            "model": data["models"],
            "hardware": [[each] for each in data["hardware"]],
            "workload": [each for spans in data["workloads"] for each in spans],
            "slo": data["slos"],
            "precision": data["precisions"],
            "objective": data["objectives"],
        }
        common = {
            "limits": data["limits"], "serving": data["serving"],
            "max_candidates": 1, "verify": False, "explain": "brief",
        }  # fmt: skip
        return Grid(axes, common)


class SweepBody(Closed):
    """Many plan requests: a grid, or a list."""

    grid = Section(GridBody, "Combinations; null: `requests`.", allow_none=True, load_default=None)
    requests = ListOf(
        Section(PlanBody), "Plan requests, each whole; null: `grid`.",
        fewest=1, most=MOST_REQUESTS, allow_none=True, load_default=None,
    )  # fmt: skip

    @validates_schema
    def one_of_both(self, data: dict[str, Any], **_: Any) -> None:
        """Exactly one of the two."""
        if (data["grid"] is None) == (data["requests"] is None):
            wrong = fault("Give either a grid or requests.", allowed=["grid", "requests"])
            raise ValidationError({"grid": wrong.messages})

    @post_load(pass_original=True)
    def keep_request(self, data: dict[str, Any], original: Any, **_: Any) -> dict[str, Any]:
        """The questions with, as `request`, what was sent, for it to be kept."""
        request = kept_request(original, LARGEST_REQUEST)
        questions: Questions = data["grid"] or Listed(data["requests"])
        return {"questions": questions, "request": request}


def loaded_sweep(document: Any) -> dict[str, Any]:
    """A sweep that did not come as the body of a request; as `loaded`."""
    return loaded(SweepBody(), document)


def _figures(value: Any, *, whole: bool) -> list[Any] | None:
    """What is swept: the figures of a list or a range; None where `value` is neither."""
    if isinstance(value, list):
        items = ListOf(Number("A figure."), fewest=1, most=MOST_STEPS, unique=True)
        return list(items.deserialize(value))
    if isinstance(value, Mapping) and {"from", "to"} & set(value):
        swept: Range = RangeBody().load(value)
        return swept.figures(whole=whole)
    return None


def _too_many(count: int) -> ValidationError:
    detail = f"The ranges span {count} workloads."
    return fault(detail, given=count, allowed={"maximum": MOST_WORKLOADS})


def _column(name: str, kind: type) -> ApiField:
    doc, null = f"`{name}`, as in a plan.", list(COLUMNS).index(name) > 4
    if kind is int:
        return Whole(doc, allow_none=null)
    if kind is float:
        return Number(doc, allow_none=null)
    if kind is bool:
        return Flag(doc, allow_none=null)
    return (
        Choice("What became of it.", STATUSES) if name == "status" else Text(doc, allow_none=null)
    )


_columns = {name: _column(name, kind) for name, kind in COLUMNS.items()}
_doc = "One question and its answer: the plan that is recommended, in figures."
SweepRowAnswer: type[Answer] = type("SweepRowAnswer", (Answer,), {**_columns, "__doc__": _doc})


class SweptProfileAnswer(Answer):
    """A profile that the request names."""

    kind = Choice("", ("models", "hardware"))
    named = Text("As the request names it.")
    name = Text("Of the profile.")
    version = Whole("As its `ETag` gave it when the sweep was taken.")


class SweepSummaryAnswer(Answer):
    """A sweep as a list shows it."""

    id = Text()
    created_at = Text("UTC, RFC 3339.")
    state = Choice("`queued`: nothing taken yet.", STATES)
    total = Whole("Questions.")
    done = Whole("Those answered, refused ones among them.")
    planner_version = Text("Version of the service that took it.")


class SweepAnswer(SweepSummaryAnswer):
    """How far a sweep is."""

    refused = Whole("Those that the planner refused.")
    rate_per_s = Number("Answered a second, from the first taken to the last applied; null: none "
                        "yet.", allow_none=True)  # fmt: skip
    estimated_end = Text("When it ends at that rate. UTC, RFC 3339.", allow_none=True)
    finished_at = Text("When the last was answered. UTC, RFC 3339.", allow_none=True)
    re_evaluation_of = Text("The sweep that was made again.", allow_none=True)
    profiles = ListOf(Section(SweptProfileAnswer), "Each as it was when the sweep was taken.")
    coefficients_version = Text("Digest of the planner's data.")
    request = AnyJson("As it was sent.")


SweepPage: type[Answer] = page_of(SweepSummaryAnswer, "SweepPage")


class SweepDifferenceAnswer(Answer):
    """A question whose row is another one now."""

    item = Whole("Its number, from 0.")
    model = Text("As in its row.")
    hardware = Text("As in its row.")
    objective = Text("As in its row.")
    differences = ListOf(Section(DifferenceAnswer), "The columns that differ.")


SweepDifferencePage: type[Answer] = page_of(SweepDifferenceAnswer, "SweepDifferencePage")
SweepRowPage: type[Answer] = page_of(SweepRowAnswer, "SweepRowPage")


class SweepQuery(PageQuery):
    """Which sweeps to list."""


class SweepRowQuery(PageQuery):
    """Which rows to read."""


class SweepDifferenceQuery(PageQuery):
    """Which differences to read."""

    against = Text(
        "Id of the sweep to compare with; without it, that which this one was made again of.",
        32, load_default=None, allow_none=False,
    )  # fmt: skip


class ResultsQuery(Closed):
    """In what form rows are read."""

    format = Choice(
        "The form; `parquet` needs the extra of that name.", tuple(FORMATS),
        load_default="jsonl", allow_none=False,
    )  # fmt: skip
