"""`advisor calibrate`: coefficients fitted to measurements."""

from __future__ import annotations

from pathlib import Path

import click

from advisor.cli.tables import console, heading


@click.command()
@click.argument("measurements", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--rounds", default=2, show_default=True, help="Steps of the fit.")
@click.option(
    "--write", type=click.Path(dir_okay=False, path_type=Path),
    help="Keep coefficients.toml with the new values here.",
)  # fmt: skip
def calibrate(measurements: Path, rounds: int, write: Path | None) -> None:
    """Fit the coefficients of step times to measured benchmarks.

    MEASUREMENTS is a CSV file with the columns of advisor/accuracy/measurements.csv. Each
    coefficient stays near its value unless the rows pull it away; the new values serve as
    `efficiency` of a hardware profile. Hundreds of rows take minutes.
    """
    from advisor.accuracy.calibrate import Fit, aimed, fit, rewritten
    from advisor.accuracy.compare import score_table, scores
    from advisor.accuracy.rows import read_rows

    try:
        rows = read_rows(measurements.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    output = console()
    found: Fit | None = None
    values = None
    for number in range(rounds):
        found = fit(rows, values, from_stated=True)
        values = found.improved()
        output.print(heading(f"Before step {number + 1}"))
        names = ["metric", "load", "model"]
        output.print(score_table(scores(r for r, _ in aimed(found.residuals)), names), "")
    assert found is not None
    assert values is not None
    output.print(heading("Coefficients that moved"))
    for key, value in values.items():
        before = found.stated[key]
        if abs(value / before - 1) > 0.01:
            output.print(f"{key[0]} ({key[1]}): {before:.3g} -> {value:.3g}")
    if write is not None:
        write.write_text(rewritten(values), encoding="utf-8")
