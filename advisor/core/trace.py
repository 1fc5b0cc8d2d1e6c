"""A trace of requests as they came, and the load that closed forms take it for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.core.requests import Requests
from advisor.core.workload import MAX_P95_TO_MEAN, Length, Workload

Array = NDArray[np.float64]

FEWEST_TRACED, MOST_TRACED = 20, 5_000
"""Requests of a trace: fewer say little of how they come, more are too many to replay."""

_PARTS = 10
"""A trace is cut into as many parts of equal time, to tell its peak."""

_LARGEST_OF_PARTS = 1.5388
"""Expected largest of ten standard normal values: by so many deviations the fullest of ten parts
exceeds their mean by chance alone."""

_LEAST_SHARE = 1.001
"""A p95 is taken as no less than this times the mean: that of a log-normal of a spread below
z = 1.645 is above it."""


@dataclass(frozen=True)
class Trace:
    """Requests in the order in which they were sent [s], not all at once, with their tokens."""

    sent_s: tuple[float, ...]
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sent_s)

    @property
    def duration_s(self) -> float:
        """From the first request to the last."""
        return self.sent_s[-1] - self.sent_s[0]

    @property
    def longest(self) -> int:
        """Tokens of the longest request, input and output."""
        return max(a + b for a, b in zip(self.input_tokens, self.output_tokens, strict=True))

    @property
    def rate_per_s(self) -> float:
        """Mean arrivals a second."""
        return (len(self) - 1) / self.duration_s

    @property
    def arrival_cv(self) -> float:
        """Coefficient of variation of the times between arrivals about the mean of their own part
        of the trace, so that a rate that changes does not count."""
        between, part = np.diff(self.sent_s), self._part[1:]
        count = np.bincount(part, minlength=_PARTS)
        mean = np.bincount(part, between, minlength=_PARTS) / np.maximum(count, 1)
        square = np.bincount(part, (between - mean[part]) ** 2, minlength=_PARTS)
        told = (count > 1) & (mean > 0)
        cv2 = square[told] / (count[told] - 1) / mean[told] ** 2
        return float(np.sqrt(np.average(cv2, weights=count[told]))) if told.any() else 0.0

    @property
    def peak_to_mean(self) -> float:
        """Requests in the fullest tenth of the time over those of a mean one, less what chance
        alone would add."""
        count = np.bincount(self._part, minlength=_PARTS)
        mean = len(self) / _PARTS
        by_chance = _LARGEST_OF_PARTS * self.arrival_cv * np.sqrt(mean)
        return float(max((count.max() - by_chance) / mean, 1.0))

    @property
    def _part(self) -> NDArray[np.int64]:
        """The tenth of the time in which each request was sent."""
        at = (np.array(self.sent_s) - self.sent_s[0]) / self.duration_s * _PARTS
        return np.minimum(at.astype(np.int64), _PARTS - 1)

    def workload(self, prefix_cache_hit: float = 0.0) -> Workload:
        """The steady load that is like it."""
        return Workload(
            input_tokens=_fitted(self.input_tokens),
            output_tokens=_fitted(self.output_tokens),
            request_rate_per_s=self.rate_per_s,
            arrival_cv=self.arrival_cv,
            peak_to_mean=self.peak_to_mean,
            prefix_cache_hit=prefix_cache_hit,
            trace=self,
        )

    def requests(self, prefix_cache_hit: float) -> Requests:
        """The requests themselves, from 0 s on, the same share of each input cached."""
        inputs = np.array(self.input_tokens, dtype=np.int64)
        new = np.maximum(np.rint(inputs * (1 - prefix_cache_hit)), 1).astype(np.int64)
        outputs = np.array(self.output_tokens, dtype=np.int64)
        return Requests(inputs, new, outputs, sent_s=np.array(self.sent_s) - self.sent_s[0])

    def busiest(self, most: int) -> Trace:
        """The `most` requests in a row that came in the shortest time, or all."""
        if len(self) <= most:
            return self
        at = np.array(self.sent_s)
        first = int(np.argmin(at[most - 1 :] - at[: len(at) - most + 1]))
        part = slice(first, first + most)
        return Trace(self.sent_s[part], self.input_tokens[part], self.output_tokens[part])

    def as_dict(self) -> dict[str, Any]:
        """The trace in its API form."""
        columns = ("sent_s", "input_tokens", "output_tokens")
        return {name: list(getattr(self, name)) for name in columns}


def _fitted(tokens: tuple[int, ...]) -> Length:
    """The log-normal of this mean and p95, or of the nearest p95 that one has."""
    lengths = np.array(tokens, dtype=np.float64)
    mean = float(lengths.mean())
    if lengths.min() == lengths.max():
        return Length(mean)
    p95 = float(np.quantile(lengths, 0.95))
    return Length(mean, float(np.clip(p95, _LEAST_SHARE * mean, MAX_P95_TO_MEAN * mean)))
