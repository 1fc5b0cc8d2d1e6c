"""How long requests are: fixed, log-normal or a histogram of tokens, and classes of such requests.

A length is a mixture of components, each fixed or log-normal; moments come from these. Within a
class inputs and outputs vary independently; across classes they go together, so that the mean of a
product is not the product of means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist

Z95 = 1.6448536269514722
"""Standard normal 95th percentile."""

MAX_P95_TO_MEAN = math.exp(Z95**2 / 2)
"""No log-normal has a p95 further from its mean than this (3.868)."""

_PARTS = 6
"""Lengths that stand for a log-normal one, where the mean of a ratio is asked for."""

MOST_GROUPS = 12
"""Latencies are computed for at most about as many lengths of a histogram."""


@dataclass(frozen=True)
class Component:
    """A `share` of requests whose length is fixed at its mean [tokens] or log-normal around it."""

    share: float
    mean: float
    p95: float | None = None

    @cached_property
    def sigma(self) -> float:
        """Shape of the log-normal; 0 when every request is equally long.

        From p95/mean = exp(z s - s^2 / 2): s = z - sqrt(z^2 - 2 ln(p95 / mean)), the smaller root.
        """
        if self.p95 is None:
            return 0.0
        return Z95 - math.sqrt(max(Z95**2 - 2 * math.log(self.p95 / self.mean), 0.0))

    @property
    def squared_cv(self) -> float:
        """Squared coefficient of variation."""
        return math.expm1(self.sigma**2)

    @property
    def gaps(self) -> float:
        """Mean number of gaps between so many output tokens."""
        return max(self.mean - 1, 0.0)

    @property
    def parts(self) -> tuple[Component, ...]:
        """Itself, or of a log-normal the means of its shortest, ..., longest, of as many requests
        each: mean * count * (Phi(z_high - sigma) - Phi(z_low - sigma))."""
        if not self.sigma or not self.gaps:
            return (self,)
        normal = NormalDist()
        ends = (normal.cdf(normal.inv_cdf(i / _PARTS) - self.sigma) for i in range(1, _PARTS))
        return tuple(
            Component(self.share / _PARTS, max(self.mean * _PARTS * (high - low), 1.0))
            for low, high in pairwise([0.0, *ends, 1.0])
        )


@dataclass(frozen=True)
class Length:
    """Tokens of an input or an output: fixed, log-normal with this mean and p95, or a `mixture` of
    such components, whose mean this is."""

    mean: float
    p95: float | None = None
    mixture: tuple[Component, ...] = ()

    @classmethod
    def mixed(cls, parts: Iterable[tuple[float, Length]]) -> Length:
        """Lengths of which each has its weight; equal components are one."""
        parts = [(weight, length) for weight, length in parts if weight]
        total = math.fsum(weight for weight, _ in parts)
        shares: dict[tuple[float, float | None], list[float]] = {}
        for weight, length in parts:
            for one in length.components:
                shares.setdefault((one.mean, one.p95), []).append(weight / total * one.share)
        if len(shares) == 1:
            return cls(*next(iter(shares)))
        mixture = tuple(Component(math.fsum(each), *like) for like, each in shares.items())
        return cls(math.fsum(one.share * one.mean for one in mixture), mixture=mixture)

    @classmethod
    def histogram(cls, values: Sequence[float], weights: Sequence[float] | None = None) -> Length:
        """Some numbers of tokens, all as frequent without weights."""
        return cls.mixed(zip(weights or [1.0] * len(values), map(cls, values), strict=True))

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What this is a mixture of: itself, where it is none; shares add up to 1."""
        return self.mixture or (Component(1.0, self.mean, self.p95),)

    @cached_property
    def grouped(self) -> tuple[Component, ...]:
        """The components; of a long histogram neighbours together, of as many requests a group,
        and outputs of one token, which have no gaps, apart."""
        if len(self.components) <= MOST_GROUPS:
            return self.components
        groups: dict[int, list[Component]] = {}
        below = 0.0
        for one in sorted(self.components, key=lambda each: each.mean):
            place = int((below + one.share / 2) * MOST_GROUPS) if one.mean > 1 else -1
            groups.setdefault(place, []).append(one)
            below += one.share
        shares = [math.fsum(one.share for one in group) for group in groups.values()]
        return tuple(
            Component(share, math.fsum(one.share * one.mean for one in group) / share)
            for share, group in zip(shares, groups.values(), strict=True)
        )

    @cached_property
    def parts(self) -> tuple[Component, ...]:
        """The `grouped` components, log-normal ones in parts of one length each."""
        return tuple(part for one in self.grouped for part in one.parts)

    @cached_property
    def squared_cv(self) -> float:
        """Squared coefficient of variation: that within components, and that of their means."""
        terms = (
            one.share * ((1 + one.squared_cv) * (one.mean / self.mean) ** 2 - 1)
            for one in self.components
        )
        return max(math.fsum(terms), 0.0)

    @property
    def mean_square(self) -> float:
        """E[length^2] [tokens^2]."""
        return self.mean**2 * (1 + self.squared_cv)

    @property
    def longest(self) -> float:
        """The longest planned for [tokens]: of log-normal components their p95."""
        return max(one.p95 or one.mean for one in self.components)


@dataclass(frozen=True)
class RequestClass:
    """Requests alike in kind, a `share` of all (a weight, until it is set against the others'):
    their lengths, the part of their input tokens that is a prefix found in the cache, one that all
    share or each its own, and SLOs of their own [ms] beside those of all requests."""

    input_tokens: Length
    output_tokens: Length
    share: float = 1.0
    prefix_cache_hit: float = 0.0
    name: str = ""
    slo: Mapping[str, float] = field(default_factory=dict, compare=False)
    own_prefixes: bool = False

    def with_slo(self, slo: Mapping[str, float]) -> RequestClass:
        """The class with those of the SLOs of a request that are its own."""
        keys = (key.partition("@") for key in slo)
        own = {key: slo[f"{key}@{name}"] for key, at, name in keys if at and name == self.name}
        return replace(self, slo=own)

    @cached_property
    def prompt_tokens(self) -> Length:
        """Input tokens that are computed, the prefix taken out; the last of them always is."""
        missed = 1 - self.prefix_cache_hit
        if missed == 1:
            return self.input_tokens
        return Length.mixed(
            (one.share, Length(one.mean * missed, one.p95 and one.p95 * missed))
            if one.mean * missed >= 1
            else (one.share, Length(1.0))
            for one in self.input_tokens.components
        )

    @cached_property
    def by_prompt(self) -> tuple[RequestClass, ...]:
        """The class by the lengths of its inputs; shares are those of its requests."""
        parts = self.input_tokens.grouped
        return tuple(
            replace(self, input_tokens=Length(one.mean, one.p95), share=one.share) for one in parts
        )

    @property
    def cached_tokens(self) -> float:
        """Mean input tokens that are found in the prefix cache."""
        return self.input_tokens.mean * self.prefix_cache_hit

    @property
    def shared_tokens(self) -> float:
        """Mean input tokens that the prefix cache holds once for all requests of the class."""
        return 0.0 if self.own_prefixes else self.cached_tokens

    @property
    def prompt_pairs(self) -> float:
        """Mean query-key pairs of a prompt: each token with those before it, and itself."""
        prompt, varies = self.prompt_tokens, 1 + self.input_tokens.squared_cv
        with_prefix = prompt.mean * self.cached_tokens * varies
        return with_prefix + (prompt.mean_square + prompt.mean) / 2

    @cached_property
    def gaps(self) -> float:
        """Mean number of gaps between the output tokens of a request."""
        return math.fsum(one.share * one.gaps for one in self.output_tokens.components)

    @property
    def with_gaps(self) -> float:
        """Share of its requests that have more than one output token."""
        return math.fsum(one.share for one in self.output_tokens.components if one.gaps)

    @property
    def live_context(self) -> float:
        """Mean context of a request seen in decode, length-biased: ISL + E[OSL^2] / (2 E[OSL])."""
        output = self.output_tokens
        return self.input_tokens.mean + output.mean_square / (2 * output.mean)

    @property
    def longest(self) -> float:
        """Tokens of the longest request planned for."""
        return self.input_tokens.longest + self.output_tokens.longest


def mean_over(classes: Iterable[RequestClass], value: Callable[[RequestClass], float]) -> float:
    """The mean of a figure of each class over all requests."""
    return math.fsum(one.share * value(one) for one in classes)
