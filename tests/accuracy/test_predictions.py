"""Predictions row by row, and the picture of them.

`python -m tests.accuracy.test_predictions` draws docs/accuracy.svg anew.
"""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from advisor import plots
from advisor.accuracy.closed_form import closed_form
from advisor.accuracy.held_out import held_out, residuals
from advisor.accuracy.predictions import BASIS, LOAD, METRIC, predictions
from advisor.accuracy.rows import rows
from advisor.charts.accuracy import accuracy
from advisor.charts.chart import Chart

PICTURE = Path(__file__).parents[2] / "docs" / "accuracy.svg"
KEPT = {row["id"]: row for row in predictions()["predictions"]}


def chart() -> Chart:
    made = accuracy(predictions())
    assert made is not None
    return made


def test_every_row_that_is_held_out_is_there_as_it_was_measured():
    left_out = {row.id for fold in held_out(rows()) if fold.basis == BASIS for row in fold.rows}
    measured = {
        row.id: row.measured[METRIC]
        for row in rows()
        if row.load == LOAD and METRIC in row.measured and row.id in left_out
    }
    assert KEPT
    assert {name: row["measured"] for name, row in KEPT.items()} == pytest.approx(
        {name: measured[name] for name in KEPT}, rel=1e-5
    )
    assert len(KEPT) > 0.9 * len(measured)


def test_what_is_kept_of_a_fold_is_what_is_predicted_today():
    """One of them, for time: the others are predicted by `make accuracy`."""
    chosen = [row for row in rows() if row.id in KEPT and row.kind == "dense"][:1]
    folds = [
        fold
        for fold in held_out(rows())
        if fold.basis == BASIS and chosen[0].id in {row.id for row in fold.rows}
    ]
    assert folds
    found = [
        each
        for each in residuals(rows(), lambda row: closed_form(row) if row in chosen else {}, BASIS)
        if each.metric == METRIC
    ]
    assert [each.row.id for each in found] == [chosen[0].id]
    assert found[0].predicted == pytest.approx(KEPT[chosen[0].id]["predicted"], rel=1e-4)


def test_the_chart_counts_what_lies_in_its_interval_and_the_median_error():
    table = chart().table
    names = [column.name for column in table.columns]
    measured, predicted, low, high = (
        np.array([row[names.index(name)] for row in table.rows], dtype=float)
        for name in ("measured", "predicted", "low", "high")
    )
    held = np.mean((low <= measured) & (measured <= high))
    error = np.median(abs(predicted / measured - 1))
    assert f"{100 * held:.0f} % lie within" in chart().summary
    assert f"less than {100 * error:.0f} %" in chart().summary
    assert sum(len(one.x) for one in chart().series if one.kind == "points") == len(KEPT)


def test_the_picture_shows_what_is_kept():
    root = ElementTree.parse(PICTURE).getroot()
    assert root.findtext("{http://www.w3.org/2000/svg}desc") == chart().summary


if __name__ == "__main__":
    PICTURE.write_bytes(plots.draw(chart(), "svg"))
