"""Fitting coefficients to measured rows: damped least squares of log ratios.

Which are fitted stands in `coefficients.toml` (`fitted`, by key). Each is drawn to the value that
it has: `_SPREAD` is how far a step may take it, in logarithms of a cost or of the odds of a share.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from advisor.accuracy.closed_form import closed_form
from advisor.accuracy.compare import Predictor, Residual, compare
from advisor.accuracy.rows import Row
from advisor.accuracy.simulated import simulated
from advisor.core.coefficients import changed, coefficient_bounds, entry_value, table

Array = NDArray[np.float64]
Key = tuple[str, str]
Values = Mapping[Key, float]

AIMS: Mapping[str, tuple[tuple[tuple[str, ...], float], ...]] = {
    "fixed_concurrency": ((("tpot_mean_ms", "itl_mean_ms"), 0.08), (("ttft_mean_ms",), 0.25)),
    "open": ((("tpot_mean_ms", "itl_mean_ms"), 0.2),),
    "saturated": ((("output_tokens_per_s",), 0.1),),
}
"""What is fitted, by load: of each group the first metric that was measured, with the log ratio
that counts as noise. Static batches and bursts of prompts, of engines of 2024, are compared and not
fitted."""

_HUBER = 2.0
"""Log ratios beyond so many times the noise pull in proportion, not squared: a wrong reading must
not rule."""

_FEW = 4
_USUAL = 8
"""Rows of one model on one device under one engine are correlated: the noise of each grows with the
fourth root of how many there are, as if a group of `_USUAL` were as good as its rows."""

_STEP = 0.05
_SPREAD = 0.3
_LONGEST_STEP = 0.6
_REWEIGHTED = 8


@dataclass(frozen=True)
class Fit:
    """Coefficients by name and key, with what they were fitted to: the residuals, their noise, and
    how each log ratio changes with each coefficient, (residuals, coefficients)."""

    keys: tuple[Key, ...]
    start: Array
    position: Array
    residuals: tuple[Residual, ...]
    noise: Array
    slopes: Array

    @property
    def values(self) -> dict[Key, float]:
        """The coefficients."""
        return _values(self.keys, self.position)

    @property
    def stated(self) -> dict[Key, float]:
        """The coefficients of the data file, from which the fit started."""
        return _values(self.keys, self.start)

    def improved(self, hidden: Container[str] = ()) -> dict[Key, float]:
        """The coefficients one step on, from all rows but those with `hidden` ids."""
        chosen = np.array([each.row.id not in hidden for each in self.residuals])
        ratios = np.array([each.log_ratio for each in self.residuals])
        noise = self.noise * _crowding(self.residuals)
        step = _step(self.slopes[chosen], ratios[chosen], noise[chosen])
        return _values(self.keys, self.position + step)


def fitted_keys() -> tuple[Key, ...]:
    """The coefficients that are fitted."""
    entries = table("coefficients.toml").items()
    return tuple((name, key) for name, entry in entries for key in entry.get("fitted", ()))


def fit(rows: Sequence[Row], at: Values | None = None, workers: int = 2) -> Fit:
    """Residuals and slopes at some coefficients (those of the data file where not given).

    Slopes of loads that end are those of the simulation, of others the closed form's.
    """
    keys = fitted_keys()
    start = np.array([_place(key, _stated(key)) for key in keys])
    position = np.array([_place(key, (at or {}).get(key, _stated(key))) for key in keys])
    base = _aimed(rows, simulated, _values(keys, position))
    points = [position, *(position + _STEP * row for row in np.eye(len(keys)))]
    moves = partial(_aimed, rows, _quick)
    with ProcessPoolExecutor(workers) as pool:
        found = list(pool.map(moves, [_values(keys, point) for point in points]))
    ratios = [{_name(each): each.log_ratio for each, _ in one} for one in found]
    known = [(each, noise) for each, noise in base if _name(each) in ratios[0]]
    slopes = np.array(
        [
            [(one.get(_name(each), 0.0) - ratios[0][_name(each)]) / _STEP for one in ratios[1:]]
            for each, _ in known
        ]
    )
    noise = np.array([noise for _, noise in known])
    return Fit(keys, start, position, tuple(each for each, _ in known), noise, slopes)


def _quick(row: Row) -> Mapping[str, float]:
    return simulated(row) if row.load == "fixed_concurrency" else closed_form(row)


def _aimed(rows: Sequence[Row], predict: Predictor, values: Values) -> list[tuple[Residual, float]]:
    with changed(values):
        return list(aimed(compare(rows, predict).residuals))


def aimed(residuals: Iterable[Residual]) -> list[tuple[Residual, float]]:
    """The residuals that are fitted, each with its noise."""
    by_row: dict[str, dict[str, Residual]] = {}
    for each in residuals:
        by_row.setdefault(each.row.id, {})[each.metric] = each
    chosen = []
    for measured in by_row.values():
        for metrics, noise in AIMS.get(next(iter(measured.values())).row.load, ()):
            first = next((m for m in metrics if m in measured), None)
            if first:
                chosen.append((measured[first], noise))
    return chosen


def _name(residual: Residual) -> tuple[str, str]:
    return residual.row.id, residual.metric


def _crowding(residuals: Sequence[Residual]) -> Array:
    groups = [(r.metric, r.row.model, r.row.device, r.row.engine) for r in residuals]
    counts = Counter(groups)
    return np.array([(max(counts[each], _FEW) / _USUAL) ** 0.25 for each in groups])


def _step(slopes: Array, ratios: Array, noise: Array) -> Array:
    """A step by iteratively reweighted least squares, each coefficient drawn to where it is."""
    step = np.zeros(slopes.shape[1])
    pull = np.eye(len(step)) / _SPREAD
    for _ in range(_REWEIGHTED):
        size = np.maximum(np.abs(ratios + slopes @ step) / noise, 1e-9)
        weight = np.sqrt(np.minimum(1.0, _HUBER / size)) / noise
        left = np.concatenate([slopes * weight[:, None], pull])
        right = np.concatenate([-ratios * weight, np.zeros(len(step))])
        step = np.linalg.lstsq(left, right, rcond=None)[0]
        step = np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    return np.asarray(step)


def _stated(key: Key) -> float:
    return entry_value(table("coefficients.toml")[key[0]], key[1])


def _values(keys: Sequence[Key], position: Array) -> dict[Key, float]:
    return {key: _value(key, x) for key, x in zip(keys, position.tolist(), strict=True)}


def _place(key: Key, value: float) -> float:
    """Where on the real line a value lies: the logarithm of a cost, the log odds of a share."""
    if coefficient_bounds(key[0])[1] > 1:
        return math.log(value)
    return math.log(value / (1 - value))


def _value(key: Key, place: float) -> float:
    if coefficient_bounds(key[0])[1] > 1:
        return math.exp(place)
    return 1 / (1 + math.exp(-place))


def rewritten(values: Values) -> str:
    """`coefficients.toml` with other values, two digits each, its comments kept."""
    text = resources.files("advisor.core").joinpath("coefficients.toml").read_text("utf-8")
    for (name, key), value in values.items():
        start = text.index(f"[{name}]\n")
        end = text.find("\n[", start) if "\n[" in text[start:] else len(text)
        written = key if key.isidentifier() else f'"{key}"'
        block = re.sub(
            rf"(\b|(?=\"))({re.escape(written)} = )[0-9.e+-]+", rf"\g<2>{value:.2g}",
            text[start:end], count=1,
        )  # fmt: skip
        text = text[:start] + block + text[end:]
    return text
