"""What is sent to one replica in a simulation, and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import FieldError, InvalidInput
from advisor.core.lengths import Length
from advisor.core.workload import Workload

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """Requests in the order in which they are sent, arrays of shape (count,).

    Of `input_tokens`, `new_input_tokens` are computed and the others found in the prefix cache.
    They are sent at `sent_s` (rising), or, where `concurrency` is given instead, so many at 0 and
    each other one when an answer is complete. `request_class` is the number of each one's class,
    where there are several.
    """

    input_tokens: Index
    new_input_tokens: Index
    output_tokens: Index
    sent_s: Array | None = None
    concurrency: int | None = None
    request_class: Index | None = None

    def __post_init__(self) -> None:
        for name in ("input_tokens", "new_input_tokens", "output_tokens"):
            tokens = getattr(self, name)
            if tokens.shape != (len(self),) or not len(self) or (tokens < 1).any():
                detail = "A whole number of tokens is expected for each request, at least 1."
                raise InvalidInput(FieldError(f"/{name}", detail))
        if (self.new_input_tokens > self.input_tokens).any():
            detail = "No more input tokens are computed than there are."
            raise InvalidInput(FieldError("/new_input_tokens", detail))
        if (self.sent_s is None) == (self.concurrency is None):
            detail = "Requests have times at which they are sent, or a concurrency."
            raise InvalidInput(FieldError("/concurrency", detail, given=self.concurrency))
        if self.concurrency is not None and self.concurrency < 1:
            detail = "At least one request is in flight."
            raise InvalidInput(FieldError("/concurrency", detail, given=self.concurrency))
        if self.sent_s is not None and (
            self.sent_s.shape != (len(self),) or (np.diff(self.sent_s) < 0).any()
        ):
            detail = "Times do not fall, and each request has one."
            raise InvalidInput(FieldError("/sent_s", detail))

    def __len__(self) -> int:
        return len(self.input_tokens)

    def take(self, index: Index) -> Requests:
        """Some of the requests that have times, in this order."""
        assert self.sent_s is not None
        return Requests(
            self.input_tokens[index],
            self.new_input_tokens[index],
            self.output_tokens[index],
            sent_s=self.sent_s[index],
            request_class=None if self.request_class is None else self.request_class[index],
        )


def sample_requests(
    workload: Workload,
    count: int,
    rng: np.random.Generator,
    input_range: tuple[int, int] | None = None,
    output_range: tuple[int, int] | None = None,
) -> Requests:
    """Requests of a workload. Lengths are the workload's, or, as benchmarks draw them, uniform over
    a range, both ends included.

    An open load's times between arrivals are gamma distributed (exponential at a variation of 1); a
    saturated replica has all requests at once. Each class has its share of the requests, and its
    prefix hit is the same share of each input.
    """
    classes = workload.mix
    of = _dealt([one.share for one in classes], count, rng)
    inputs, outputs, new = (np.empty(count, dtype=np.int64) for _ in range(3))
    for number, one in enumerate(classes):
        mine = np.flatnonzero(of == number)
        inputs[mine] = _lengths(one.input_tokens, len(mine), rng, input_range)
        outputs[mine] = _lengths(one.output_tokens, len(mine), rng, output_range)
        new[mine] = np.maximum(np.rint(inputs[mine] * (1 - one.prefix_cache_hit)), 1)
    sent_s = None
    if workload.request_rate_per_s is not None:
        rate = workload.request_rate_per_s * workload.peak_to_mean
        between, variance = np.full(count, 1 / rate), workload.arrival_cv**2
        if variance:
            between = rng.gamma(1 / variance, variance / rate, count)
        sent_s = np.cumsum(between)
    at_once = (workload.concurrency or count) if sent_s is None else None
    return Requests(inputs, new, outputs, sent_s, at_once, of if workload.classes else None)


def _lengths(
    length: Length, count: int, rng: np.random.Generator, within: tuple[int, int] | None
) -> Index:
    if within is not None:
        return rng.integers(within[0], within[1], count, endpoint=True)
    parts = length.components
    of = _dealt([one.share for one in parts], count, rng)
    mean, sigma = np.array([(one.mean, one.sigma) for one in parts]).T[:, of]
    tokens = mean * np.exp(sigma * rng.standard_normal(count) - sigma**2 / 2)
    return np.asarray(np.maximum(np.rint(tokens), 1), dtype=np.int64)


def _dealt(shares: Sequence[float], count: int, rng: np.random.Generator) -> Index:
    """The kind of each of `count` requests, in random order: of each kind its share, to within one
    request, so that a short run has the mean of a long one."""
    if len(shares) == 1:
        return np.zeros(count, dtype=np.int64)
    ends = np.rint(np.cumsum(shares) / sum(shares) * count).astype(np.int64)
    return rng.permutation(np.searchsorted(ends, np.arange(count), side="right"))


@dataclass(frozen=True)
class Iterations:
    """The steps of a run in order, arrays of shape (rows,). A row is `count` steps of the same
    sequences, from `start_s` on, which take `first_s` to `last_s` seconds, evenly spaced.

    `decode` sequences at mean `context` tokens (in the first step) advance by a token each; beside
    them `prompts` are in work, `prefill` tokens of them in this step. `held_bytes` is the KV cache
    that is taken in the last step.
    """

    count: Array
    start_s: Array
    first_s: Array
    last_s: Array
    decode: Array
    context: Array
    prompts: Array
    prefill: Array
    held_bytes: Array

    @property
    def seconds(self) -> Array:
        """Time of each row [s]."""
        return self.count * (self.first_s + self.last_s) / 2


@dataclass(frozen=True)
class Run:
    """What a benchmark would measure: when each request was sent, had its first token and was done
    [s], arrays of shape (count,).

    `interrupted_s` are gaps between tokens in which a sequence was evicted from the cache and
    computed anew; `evictions` counts these, and those of prompts.
    """

    requests: Requests
    sent_s: Array
    first_token_s: Array
    done_s: Array
    iterations: Iterations
    interrupted_s: Array
    evictions: int

    @property
    def ttft(self) -> Array:
        """Time to first token of each request [s]."""
        return self.first_token_s - self.sent_s

    @property
    def e2e(self) -> Array:
        """Time from sending to the last token of each request [s]."""
        return self.done_s - self.sent_s

    @property
    def tpot(self) -> Array:
        """Mean gap between tokens of each request [s]; NaN where it has one token."""
        gaps = self.requests.output_tokens - 1
        return np.where(gaps > 0, self.done_s - self.first_token_s, np.nan) / np.maximum(gaps, 1)

    @property
    def duration(self) -> float:
        """From the first request sent to the last answered [s]."""
        return float(self.done_s.max() - self.sent_s.min())

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens over the duration, ramp-up and drain included."""
        return float(self.requests.output_tokens.sum() / self.duration)

    @property
    def requests_per_s(self) -> float:
        """Requests over the duration."""
        return len(self.requests) / self.duration

    @property
    def concurrency(self) -> float:
        """Mean number of requests sent and not answered."""
        return float(self.e2e.sum() / self.duration)

    @property
    def in_service(self) -> float:
        """Mean number of sequences that decode, over the steps."""
        seconds = self.iterations.seconds
        return float((self.iterations.decode * seconds).sum() / seconds.sum())

    def itl(self, level: float) -> float:
        """The gap between tokens [s] that a share `level` of all gaps does not exceed; NaN where
        there are none."""
        rows, single = self.iterations, np.ones(len(self.interrupted_s))
        weight = np.concatenate([rows.decode, single])
        count = np.concatenate([rows.count, single])
        first = np.concatenate([rows.first_s, self.interrupted_s])
        last = np.concatenate([rows.last_s, self.interrupted_s])
        wanted = level * (weight * count).sum()
        if not wanted:
            return np.nan
        apart = np.maximum((last - first) / np.maximum(count - 1, 1), 1e-300)
        low, high = 0.0, float(last.max())
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            below = np.clip(np.floor((middle - first) / apart) + 1, 0, count)
            low, high = (low, middle) if (weight * below).sum() >= wanted else (middle, high)
        return high
