"""`advisor plan`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, BinaryIO

import click

from advisor.charts.catalogue import OF_A_PLAN
from advisor.cli import ask, plot
from advisor.cli.plan_report import MOST_ROWS, report
from advisor.cli.tables import console
from advisor.cli.traces import COLUMNS, trace_in
from advisor.core.workload import (
    ENGINES,
    EXPLANATIONS,
    KV_PRECISIONS,
    OBJECTIVES,
    ROUTINGS,
    SLO_KEYS,
    STARTS,
    WEIGHT_PRECISIONS,
)

Callback = Callable[[click.Context, click.Parameter, Any], Any]

TOKENS = "N|MEAN:P95"
DEGREES = "N,N,..."
FORMATS = "FORMAT,..."
BOUND = "KEY=MS"


def _read_by(parse: Callable[[Any], Any]) -> Callback:
    """The callback of an option whose text is read by `parse`, which raises ValueError."""

    def read(_ctx: click.Context, parameter: click.Parameter, given: Any) -> Any:
        try:
            return None if given is None else parse(given)
        except ValueError:
            form = getattr(parameter, "metavar", None)
            raise click.BadParameter(f"{given!r} is not of the form {form}.") from None

    return read


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else float(text)


@_read_by
def _tokens(text: str) -> Any:
    """A number of tokens, or the mean and the 95th percentile of a distribution."""
    mean, separator, p95 = text.partition(":")
    return {"mean": _number(mean), "p95": _number(p95)} if separator else _number(mean)


@_read_by
def _degrees(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


@_read_by
def _formats(text: str) -> list[str]:
    return text.split(",")


def _bounds(_ctx: click.Context, _parameter: click.Parameter, given: Any) -> dict[str, Any] | None:
    """SLOs by key, each given once."""
    bounds: dict[str, Any] = {}
    for text in given:
        key, _, bound = text.partition("=")
        if key in bounds:
            raise click.BadParameter(f"{key} is given twice.")
        try:
            bounds[key] = _number(bound)
        except ValueError:
            raise click.BadParameter(f"{text!r} is not {BOUND}, as in ttft_p95_ms=1000.") from None
    return bounds or None


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)


# An option's second name is its place in the request, section__field.
@click.command(no_args_is_help=True)
@click.option(
    "--model", metavar="NAME|FILE", callback=_read_by(ask.model_in),
    help="Catalogue name or alias, or a config.json.",
)  # fmt: skip
@click.option(
    "--hardware", metavar="NAME|FILE", multiple=True, callback=_read_by(ask.hardware_in),
    help="Catalogue name, or a profile in a .json file; repeat it to compare.",
)  # fmt: skip
@click.option(
    "--rate", "workload__request_rate_per_s", type=float, metavar="N",
    help="Open load: requests per second.",
)  # fmt: skip
@click.option(
    "--concurrency", "workload__concurrency", type=int, metavar="N",
    help="Closed load: requests in flight.",
)  # fmt: skip
@click.option(
    "--start", "workload__start", metavar="WORD",
    help=f"Of a closed load: {_words(STARTS)} (a whole benchmark).  [default: steady]",
)  # fmt: skip
@click.option(
    "--num-requests", "workload__num_requests", type=int, metavar="N",
    help="Requests of a burst.  [default: 10 x concurrency]",
)  # fmt: skip
@click.option(
    "--trace", "workload__trace", metavar="FILE.csv", callback=_read_by(trace_in),
    help="Open load: requests as they came, replayed; columns "
    f"{' or '.join(','.join(columns) for columns in COLUMNS)}.",
)  # fmt: skip
@click.option("--saturate", "workload__saturate", is_flag=True, help="As much load as is served.")
@click.option(
    "--input-tokens", "workload__input_tokens", metavar=TOKENS, callback=_tokens,
    help="Prompt length.",
)  # fmt: skip
@click.option(
    "--output-tokens", "workload__output_tokens", metavar=TOKENS, callback=_tokens,
    help="Answer length.",
)  # fmt: skip
@click.option(
    "--slo", metavar=BOUND, multiple=True, callback=_bounds,
    help=f"Latency bound, repeatable: {SLO_KEYS[0]}, {SLO_KEYS[2]}, ..., {SLO_KEYS[-1]}.",
)  # fmt: skip
@click.option("--objective", metavar="WORD", help=f"{_words(OBJECTIVES)}.  [default: cost]")
@click.option(
    "--weights", "precision__weights", metavar=FORMATS, callback=_formats,
    help=f"To try: {_words(WEIGHT_PRECISIONS)}.",
)  # fmt: skip
@click.option(
    "--kv-cache", "precision__kv_cache", metavar=FORMATS, callback=_formats,
    help=f"To try: {_words(KV_PRECISIONS)}.",
)  # fmt: skip
@click.option(
    "--tp", "limits__tensor_parallel", metavar=DEGREES, callback=_degrees,
    help="Tensor-parallel degrees to try.",
)  # fmt: skip
@click.option(
    "--pp", "limits__pipeline_parallel", metavar=DEGREES, callback=_degrees,
    help="Pipeline-parallel degrees to try.  [default: 1]",
)  # fmt: skip
@click.option(
    "--ep", "limits__expert_parallel", metavar=DEGREES, callback=_degrees,
    help="Expert-parallel degrees to try.",
)  # fmt: skip
@click.option(
    "--replicas", "limits__replicas", metavar=DEGREES, callback=_degrees,
    help="Numbers of replicas to try.",
)  # fmt: skip
@click.option(
    "--max-accelerators", "limits__max_accelerators", type=int, metavar="N",
    help="Of one plan.  [default: 64]",
)  # fmt: skip
@click.option(
    "--max-cost-per-hour", "limits__max_cost_per_hour", metavar="AMOUNT",
    help="In the currency of the prices.",
)  # fmt: skip
@click.option(
    "--spare-replicas", "limits__spare_replicas", type=int, metavar="N",
    help="Replicas that may be lost.",
)  # fmt: skip
@click.option(
    "--min-met-probability", "limits__min_met_probability", type=float, metavar="P",
    help="How likely the SLOs have to be met.",
)  # fmt: skip
@click.option(
    "--engine", "serving__engine", metavar="WORD", help=f"{_words(ENGINES)}.  [default: vllm]"
)
@click.option(
    "--routing", "serving__routing", metavar="WORD",
    help=f"Of an open load: {_words(ROUTINGS)}.  [default: random]",
)  # fmt: skip
@click.option(
    "--max-candidates", type=int, metavar="N",
    help=f"Most candidates shown, best first.  [default: {MOST_ROWS}; with --json 50]",
)  # fmt: skip
@click.option("--verify", is_flag=True, help="Simulate the best plans beside the closed form.")
@click.option(
    "--explain", metavar="WORD", help=f"{_words(EXPLANATIONS)}.  [default: {EXPLANATIONS[0]}]"
)
@click.option(
    "--request", "request_file", type=click.File("rb"), metavar="FILE|-",
    help="The whole request as JSON, as POST /v1/plans takes it.",
)  # fmt: skip
@click.option(
    "--plot", "plot_file", metavar="FILE", help="Draw a chart of the answer too: .svg or .png."
)
@click.option(
    "--chart", metavar="NAME", help=f"Which: {_words(OF_A_PLAN)}.  [default: {plot.DEFAULT}]"
)
@click.option("--json", "as_json", is_flag=True, help="Print the answer as the API gives it.")
@click.pass_context
def plan(
    ctx: click.Context, /, request_file: BinaryIO | None, as_json: bool, plot_file: str | None,
    chart: str | None, **options: Any,
) -> None:  # fmt: skip
    """Choose hardware, replicas and parallelism for a model and a load.

    Exit status: 0 with a recommendation, 1 when no plan meets every limit, 2 for bad input.

    \b
    advisor plan --model meta-llama-3.1-70b --hardware h100-sxm-80gb \\
      --hardware h200-sxm-141gb --rate 4 --input-tokens 1000 --output-tokens 250 \\
      --slo ttft_p95_ms=1000 --slo tpot_p95_ms=50 --weights fp8 --kv-cache fp8
    """
    shown = plot.asked_for(plot_file, chart)
    given = {name: value for name, value in options.items() if _is_given(value)}
    if request_file is None:
        document = _nested(given)
    elif given:
        raise click.UsageError("--request holds the whole question: leave out the options for it.")
    else:
        document = ask.parsed(request_file.read(), "--request")
    answer = ask.answer(document)
    if as_json:
        click.echo(json.dumps(answer, indent=2, allow_nan=False))
    else:
        console().print(report(answer, document.get("max_candidates", MOST_ROWS)))
    if plot_file is not None and shown is not None:
        plot.write(plot_file, shown, document, answer)
    if answer["recommended"] is None:
        ctx.exit(1)


def _is_given(value: Any) -> bool:
    return value is not None and value is not False and value != []


def _nested(options: Mapping[str, Any]) -> dict[str, Any]:
    """The request that options named section__field make up."""
    request: dict[str, Any] = {"workload": {}}
    for name, value in options.items():
        *sections, field = name.split("__")
        place = request
        for section in sections:
            place = place.setdefault(section, {})
        place[field] = value
    return request
