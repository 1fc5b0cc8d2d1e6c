"""`docs/accuracy.md`: how far predictions are from what was measured; the widths of intervals, and
predictions row by row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from advisor.accuracy.closed_form import closed_form
from advisor.accuracy.compare import Residual, Score, compare, markdown, scores, worst
from advisor.accuracy.held_out import residuals
from advisor.accuracy.intervals import METRIC_OF, Width, counts, widths
from advisor.accuracy.predictions import as_csv
from advisor.accuracy.ranking import choices
from advisor.accuracy.rows import Row, device_of
from advisor.accuracy.simulated import simulated
from advisor.accuracy.splits import moe_fold
from advisor.core.precision import kernel_kind
from advisor.core.units import rounded_plain

REGIMES = (
    ("tpot_mean_ms", "fixed_concurrency", "TPOT, fixed concurrency"),
    ("ttft_mean_ms", "fixed_concurrency", "TTFT, fixed concurrency, its burst in the mean"),
    ("ttft_p50_ms", "fixed_concurrency", "TTFT, fixed concurrency, median"),
    ("e2e_mean_ms", "fixed_concurrency", "E2E, fixed concurrency"),
    ("output_tokens_per_s", "saturated", "output tokens/s, saturated"),
    ("e2e_mean_ms", "open", "E2E (TTFT and gaps), open load"),
    ("itl_mean_ms", "open", "ITL, open load"),
    ("ttft_mean_ms", "open", "TTFT, open load"),
    ("e2e_mean_ms", "static_batch", "E2E, static batch"),
)
PEERS = (
    ("TPOT, fixed concurrency", "dense", "12 %", "27 %"),
    ("TPOT, fixed concurrency", "moe", "45 %", "27 %"),
    ("TTFT, fixed concurrency, its burst in the mean", "dense", "48 %", "78 %"),
    ("TTFT, fixed concurrency, its burst in the mean", "moe", "46 %", "69 %"),
    ("output tokens/s, saturated", "dense", "7 %", ""),
    ("output tokens/s, saturated", "moe", "25 %", ""),
)
"""AIConfigurator 0.12 and BLIS (inference-sim) as run on public rows of these kinds in December
2026, median absolute error."""

_WORST = 15


def report(rows: Sequence[Row]) -> tuple[str, list[Width], str]:
    """The page, the widths of the intervals that it states, and `predictions.csv`."""
    fitted = compare(rows, simulated)
    unseen = residuals(rows, simulated, "interpolated")
    by_basis = {
        "measured": compare(rows, closed_and_burst).residuals,
        "interpolated": residuals(rows, closed_and_burst, "interpolated"),
        "physics": residuals(rows, closed_and_burst, "physics"),
    }
    found = widths(by_basis)
    refused = ", ".join(f"{row.id} ({code})" for row, code in fitted.refused)
    lost = [each.share_lost for each in choices(rows, simulated)]
    parts = [
        _INTRODUCTION.format(count=len(rows)),
        _PICTURE,
        "## By regime\n\n" + _regimes(fitted.residuals, unseen),
        _without_relatives(rows, unseen),
        "## By engine and device, TPOT at fixed concurrency\n\n" + _devices(fitted.residuals),
        "## Intervals\n\n" + _intervals(found, by_basis),
        "## Choosing tensor parallelism\n\n"
        f"Under {len(lost)} sets of conditions that were measured at two degrees or more, the "
        "degree with the largest predicted throughput per accelerator gives away "
        f"{np.median(lost):.1%} of the best measured one in the median, {max(lost):.1%} at worst.",
        "## Furthest off\n\n" + _furthest(fitted.residuals),
        f"Refused, so not predicted: {refused}." if refused else "",
        _NOTES,
    ]
    page = "\n\n".join(part for part in parts if part) + "\n"
    return page, found, as_csv(by_basis["interpolated"], found)


def closed_and_burst(row: Row) -> dict[str, float]:
    """What answers carry: the closed form, but for the TTFT of a loop that starts all at once."""
    found = dict(closed_form(row))
    if row.load == "fixed_concurrency" and "ttft_mean_ms" in row.measured:
        found["ttft_mean_ms"] = simulated(row)["ttft_mean_ms"]
    return found


def _regimes(fitted: Iterable[Residual], unseen: Iterable[Residual]) -> str:
    seen, held_out = ({s.name: s for s in scores(each)} for each in (fitted, unseen))
    lines = []
    for metric, load, name in REGIMES:
        for kind in ("dense", "moe"):
            key = metric, load, kind
            if key in seen:
                peers = [p[2:] for p in PEERS if p[:2] == (name, kind)]
                ours = seen[key]
                lines.append(
                    [name, kind, ours.count, _errors(ours), _errors(held_out.get(key)),
                     *(peers[0] if peers else ("", ""))]
                )  # fmt: skip
    header = ["what", "model", "rows", "fitted", "held out", "AIConfigurator 0.12", "BLIS"]
    return markdown(header, lines)


def _without_relatives(rows: Iterable[Row], unseen: Sequence[Residual]) -> str:
    """What the MoE rows held out say of kernels that another model was measured with."""
    sparse = moe_fold(rows)
    known = {_kernel(row) for row in sparse.fit}
    alone = {row.id for row in sparse.test if _kernel(row) not in known}
    related = {s.name: s for s in scores(r for r in unseen if r.row.id not in alone)}
    tpot = related["tpot_mean_ms", "fixed_concurrency", "moe"]
    saturated = related["output_tokens_per_s", "saturated", "moe"]
    return (
        f"Of the {len(sparse.test)} MoE rows held out {len(alone)} run on kernels (an engine's, "
        "for a weight format, on a generation) that no fitted model was measured with: they are "
        "predicted from other kernels of the format. The others' TPOT is off by "
        f"{_errors(tpot)}, their saturated throughput by {_errors(saturated)}."
    )


def _kernel(row: Row) -> tuple[str, str, str]:
    return row.engine, device_of(row).generation, kernel_kind(row.weights)


def _errors(score: Score | None) -> str:
    if score is None:
        return ""
    return f"{score.median:.1%} (p90 {score.p90:.0%}; n={score.count})"


def _devices(fitted: Iterable[Residual]) -> str:
    chosen = [r for r in fitted if (r.metric, r.row.load) == ("tpot_mean_ms", "fixed_concurrency")]
    by = scores(chosen, lambda r: (r.row.kind, r.row.engine, r.row.device))
    header = ["model", "engine", "device", "rows", "predicted / measured", "median error", "p90"]
    return markdown(
        header,
        ([*s.name, s.count, f"{s.ratio:.2f}", f"{s.median:.1%}", f"{s.p90:.0%}"] for s in by),
    )


def _intervals(found: Sequence[Width], by_basis: dict[str, Sequence[Residual]]) -> str:
    lines = []
    for each in found:
        held = [
            each.low <= -r.log_ratio <= each.high
            for r in by_basis[each.basis]
            if counts(r) and METRIC_OF[r.metric] == each.metric and r.row.kind == each.kind
        ]
        share = f"{np.mean(held):.0%}" if held else "-"
        lines.append(
            [each.metric, each.kind, each.basis, each.rows, f"{np.exp(each.low) - 1:+.0%}",
             f"{np.exp(each.high) - 1:+.0%}", share]
        )  # fmt: skip
    return markdown(["metric", "model", "basis", "rows", "from", "to", "held"], lines)


def _furthest(fitted: Iterable[Residual]) -> str:
    shown = {(metric, load) for metric, load, _ in REGIMES}
    chosen = [r for r in fitted if (r.metric, r.row.load) in shown]
    return markdown(
        ["row", "metric", "engine", "device", "model", "predicted", "measured"],
        (
            [r.row.id, r.metric, r.row.engine, r.row.device, r.row.model,
             rounded_plain(r.predicted), rounded_plain(r.measured)]
            for r in worst(chosen, _WORST)
        ),
    )  # fmt: skip


_PICTURE = """\
![Mean TPOT predicted against measured, each benchmark held out, with its interval.](accuracy.svg)\
"""

_INTRODUCTION = """# Accuracy

Written by `make accuracy` from `advisor/accuracy/measurements.csv`: {count} public benchmarks of
serving engines, each with its source and conditions, and what was left out and why in
`advisor/accuracy/__init__.py`. Errors are |predicted / measured - 1|, medians with the 90th
percentile beside them. Every benchmark is simulated as it was run: all clients at once, so many
requests, to the last answer.

*Fitted* errors are those of the coefficients in use, which these rows shaped. *Held out* are those
of rows that the fit did not see: a dense model on a device at a time, and the MoE models that
`moe_split.toml` sets aside; their coefficients (`held_out.json`) are those in use, moved by what
leaving the rows out changes in a step of the fit; a coefficient that no other row tells of becomes
that of its relatives. Peers' errors are medians on public rows of the same kinds, run in
December 2026; their rows and ours are not the same in every case."""

_NOTES = """## Known approximations

The list stands in [method.md](method.md), section 10. Those that show most here:

- Coefficients belong to engines, formats and generations, never to a model, and engine versions two
  years apart share them: vLLM of 2024 on Hopper comes out up to twice too fast, closed loops of
  TensorRT-LLM of late 2025 some 8 % too slow beside its earlier throughput runs.
- TTFT of SGLang and of AMD's ATOM at high concurrency waits on scheduling that is not modelled.
- Saturated runs of mixtures of experts with attention-DP lose to imbalance between ranks, which is
  in the coefficients of that engine and generation alone.
- Cards on a shared PCIe root differ by board more than by generation."""
