"""Fitting coefficients to measured rows: damped least squares of log ratios.

Which are fitted stands in `coefficients.toml` (`fitted`, by key). Each is drawn to that of the next
wider key, "tensorrt_llm/hopper" to "hopper", a default to the value that it has: `_SPREAD` is how
far it goes from there by itself, in logarithms of a cost or of the odds of a share. So what no row
tells is as the rest.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from advisor.accuracy.closed_form import closed_form
from advisor.accuracy.compare import Predictor, Residual, compare
from advisor.accuracy.rows import Row, device_of
from advisor.accuracy.simulated import simulated
from advisor.core.coefficients import (
    changed,
    coefficient_bounds,
    coefficient_names,
    entry_value,
    table,
    value_keys,
)
from advisor.core.precision import WEIGHT_BYTES, kernel_kind
from advisor.core.workload import ENGINES

Array = NDArray[np.float64]
Key = tuple[str, str]
Values = Mapping[Key, float]
_Move = tuple[int | None, Values, Sequence[Row]]

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

_KERNELS = {kernel_kind(storage) for storage in WEIGHT_BYTES}

_FEW = 4
_USUAL = 8
"""Rows of one model on one device under one engine are correlated: the noise of each grows with the
fourth root of how many there are, as if a group of `_USUAL` were as good as its rows."""

_STEP = 0.05
_SPREAD = 0.4
_LONGEST_STEP = 1.5
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

    def improved(self) -> dict[Key, float]:
        """The coefficients one step on."""
        return _values(self.keys, self.position + self._step())

    def without(self, hidden: Container[str]) -> dict[Key, float]:
        """The coefficients as they would be without the rows of these ids: moved by what leaving
        them out changes in the next step."""
        moved = self._step(hidden) - self._step()
        return _values(self.keys, self.position + moved)

    def _step(self, hidden: Container[str] = ()) -> Array:
        chosen = np.array([each.row.id not in hidden for each in self.residuals])
        ratios = np.array([each.log_ratio for each in self.residuals])
        noise = self.noise * _crowding(self.residuals)
        return _step(self.slopes[chosen], ratios[chosen], noise[chosen], *self._prior())

    def _prior(self) -> tuple[Array, Array]:
        """Differences from the wider keys as they would change with a step, (coefficients,
        coefficients), and as they are."""
        pull, place = np.eye(len(self.keys)), self.position.copy()
        known = {key: i for i, key in enumerate(self.keys)}
        for i, (name, key) in enumerate(self.keys):
            wider = name, wider_key(name, key)
            if key == "default":
                place[i] -= self.start[i]
            elif wider in known:
                pull[i, known[wider]] = -1.0
                place[i] -= self.position[known[wider]]
            else:
                place[i] -= _place(wider, _stated(wider))
        return pull, place


def fitted_keys() -> tuple[Key, ...]:
    """The coefficients that are fitted."""
    entries = table("coefficients.toml").items()
    return tuple((name, key) for name, entry in entries for key in entry.get("fitted", ()))


def wider_key(name: str, key: str) -> str:
    """The key that would hold where this one of `coefficients.toml` did not stand."""
    parts = key.split("/")
    engine = next((part for part in parts if part in ENGINES), "")
    kernel = next((part for part in parts if part in _KERNELS), "")
    generation = next((part for part in parts if part not in (engine, kernel)), "")
    keys = value_keys(name, generation, engine, kernel)
    return keys[min(keys.index(key) + 1, len(keys) - 1)]


def fit(rows: Sequence[Row], at: Values | None = None, workers: int = 2) -> Fit:
    """Residuals and slopes at some coefficients (those of the data file where not given).

    Slopes of loads that end are those of the simulation, of others the closed form's.
    """
    keys = fitted_keys()
    start = np.array([_place(key, _stated(key)) for key in keys])
    position = np.array([_place(key, (at or {}).get(key, _stated(key))) for key in keys])
    base = _aimed(rows, simulated, _values(keys, position))
    moves: list[_Move] = [(None, _values(keys, position), rows)]
    for i, key in enumerate(keys):
        moved = position.copy()
        moved[i] += _STEP
        moves.append((i, _values(keys, moved), [row for row in rows if key in _used(row)]))
    with ProcessPoolExecutor(workers) as pool:
        found = dict(pool.map(_log_ratios, moves))
    ratios = found[None]
    known = [(each, noise) for each, noise in base if _name(each) in ratios]
    slopes = np.zeros((len(known), len(keys)))
    for i in range(len(keys)):
        for j, (each, _) in enumerate(known):
            before = ratios[_name(each)]
            slopes[j, i] = (found[i].get(_name(each), before) - before) / _STEP
    noise = np.array([noise for _, noise in known])
    return Fit(keys, start, position, tuple(each for each, _ in known), noise, slopes)


def _used(row: Row) -> set[Key]:
    """The keys that may hold for a row."""
    generation = device_of(row).generation
    kernels = {kernel_kind(row.weights), "bf16"}
    return {
        (name, value_keys(name, generation, row.engine, kernel)[0])
        for name in coefficient_names()
        for kernel in kernels
    }


def _log_ratios(move: _Move) -> tuple[int | None, dict[tuple[str, str], float]]:
    which, values, rows = move
    return which, {_name(each): each.log_ratio for each, _ in _aimed(rows, _quick, values)}


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


def _step(slopes: Array, ratios: Array, noise: Array, pull: Array, place: Array) -> Array:
    """A step by iteratively reweighted least squares, each coefficient drawn to the wider ones: by
    how much each difference changes, and how large it is."""
    step = np.zeros(slopes.shape[1])
    for _ in range(_REWEIGHTED):
        size = np.maximum(np.abs(ratios + slopes @ step) / noise, 1e-9)
        weight = np.sqrt(np.minimum(1.0, _HUBER / size)) / noise
        left = np.concatenate([slopes * weight[:, None], pull / _SPREAD])
        right = np.concatenate([-ratios * weight, -place / _SPREAD])
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
        others = re.compile(rf"^\[(?!{name}\.)", re.MULTILINE)
        following = others.search(text, start + 1)
        end = following.start() if following else len(text)
        written = key if key.isidentifier() else f'"{key}"'
        block = re.sub(
            rf"(\b|(?=\"))({re.escape(written)} = )[0-9.e+-]+", rf"\g<2>{float(f'{value:.2g}'):g}",
            text[start:end], count=1,
        )  # fmt: skip
        text = text[:start] + block + text[end:]
    return text
