"""Front, knee and best candidate against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.choice import TIE, best_of, knee, pareto_front
from advisor.core.search import RUNGS, ladder, last_worthwhile, smallest_holding, spread
from tests.core.strategies import examples

# Few distinct values, so that ties are frequent.
values = st.one_of(st.integers(1, 6).map(float), st.just(math.nan))
points = st.lists(st.tuples(values, values), max_size=12)
rows = st.lists(
    st.tuples(
        st.floats(1, 1.02), st.booleans(), st.integers(1, 4), st.floats(0.5, 0.7), st.integers(1, 4)
    ),
    min_size=1, max_size=10,
)  # fmt: skip


def columns(pairs):
    latency, cost = zip(*pairs, strict=True) if pairs else ((), ())
    return np.array(latency, dtype=float), np.array(cost, dtype=float)


def beats(first, second):
    """No worse in both, better in one."""
    return first[0] <= second[0] and first[1] <= second[1] and first != second


@examples(150)
@given(points)
def test_the_front_is_what_no_other_point_beats(pairs):
    front = [pairs[i] for i in pareto_front(*columns(pairs))]
    defined = [pair for pair in pairs if not any(map(math.isnan, pair))]
    best = {one for one in defined if not any(beats(other, one) for other in defined)}
    assert set(front) == best
    assert len(front) == len(best)
    assert front == sorted(front, key=lambda pair: pair[1])


@examples(150)
@given(points, st.data())
def test_the_knee_is_the_eligible_front_point_furthest_from_the_chord(pairs, data):
    eligible = np.array(data.draw(st.lists(st.booleans(), min_size=12, max_size=12)))[: len(pairs)]
    latency, cost = columns(pairs)
    found = knee(latency, cost, eligible)
    usable = [i for i in range(len(pairs)) if eligible[i] and not math.isnan(sum(pairs[i]))]
    front = [i for i in usable if not any(beats(pairs[j], pairs[i]) for j in usable)]
    if not front:
        assert found is None
        return
    assert found in front
    ends = [min(front, key=lambda i: pairs[i][k]) for k in (1, 0)]
    distances = {i: distance(pairs[i], *(pairs[end] for end in ends)) for i in front}
    assert distances[found] == pytest.approx(max(distances.values()), abs=1e-9)


def distance(point, cheapest, fastest):
    """From a point to the chord between two others, on axes of logarithms scaled to it."""
    (y, x), (y0, x0), (y1, x1) = (tuple(map(math.log, p)) for p in (point, cheapest, fastest))
    if x0 == x1 or y0 == y1:
        return 0.0
    return abs((x - x0) / (x1 - x0) - (y - y0) / (y1 - y0))


@examples(150)
@given(rows)
def test_the_best_is_the_smallest_of_those_within_the_tie(table):
    score, eligible, accelerators, sure, ranks = (np.array(c) for c in zip(*table, strict=True))
    found = best_of(score, eligible, accelerators, sure.__getitem__, ranks)
    if not eligible.any():
        assert found is None
        return
    limit = min(one[0] for one in table if one[1]) * (1 + TIE)
    near = [i for i, one in enumerate(table) if one[1] and one[0] <= limit]
    assert found is not None
    fewest = min(table[i][2] for i in near)
    near = [i for i in near if table[i][2] == fewest]
    surest = max(table[i][3] for i in near)
    best = min((table[i][4], table[i][0]) for i in near if table[i][3] >= surest - 0.05)
    assert (accelerators[found], ranks[found], score[found]) == (fewest, *best)


ALL, ONES, SURE = np.ones(3, bool), np.ones(3, np.int64), np.ones(3).__getitem__


def test_of_plans_alike_the_one_that_is_surer_to_meet_its_slos_is_taken():
    """Four of TP1 at a coin toss cost what one of TP4 does that is well within its SLO."""
    score, four = np.full(3, 27.52), np.full(3, 4)
    ranks = np.array([1, 2, 4])
    assert best_of(score, ALL, four, np.array([0.62, 0.9, 0.99]).__getitem__, ranks) == 2
    assert best_of(score, ALL, four, np.array([0.62, 0.95, 0.99]).__getitem__, ranks) == 1
    assert (
        best_of(score, ALL, np.array([3, 4, 4]), np.array([0.62, 0.9, 0.99]).__getitem__, ranks)
        == 0
    )
    assert (
        best_of(score * [1, 1, 1.006], ALL, four, np.array([0.62, 0.6, 0.99]).__getitem__, ranks)
        == 0
    )


def test_a_score_that_is_not_defined_is_never_chosen():
    score = np.array([np.nan, 2.0, np.inf])
    assert best_of(score, ALL, ONES, SURE, ONES) == 1
    assert best_of(score[[0, 2]], ALL[:2], ONES[:2], SURE, ONES[:2]) is None


def test_plans_that_cost_nothing_can_be_compared():
    """A caller's own machines may have the price 0."""
    free = np.zeros(3)
    assert best_of(free, ALL, np.array([3, 1, 2]), SURE, ONES) == 1
    assert knee(np.array([3.0, 2.0, 1.0]), free, ALL) == 2


@examples(100)
@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_ladder_joins_its_ends_and_misses_no_count_of_a_short_span(low, height):
    rungs = ladder(low, low + height)
    assert rungs == sorted(set(rungs))
    assert (rungs[0], rungs[-1]) == (low, low + height)
    if height < RUNGS:
        assert rungs == list(range(low, low + height + 1))
    assert len(rungs) <= RUNGS


def test_a_ladder_between_crossed_ends_is_empty():
    assert ladder(5, 4) == []


@examples(100)
@given(st.integers(1, 4000), st.integers(0, 4000), st.data())
def test_the_smallest_count_that_holds_is_found_in_a_long_range(low, height, data):
    high = low + height
    threshold = data.draw(st.integers(low, high))
    asked = []

    def holds(counts):
        asked.append(len(counts))
        return [np.array(each) >= threshold for each in counts]

    ends = [(low, high), (0, 0), (threshold, threshold)]
    assert smallest_holding(holds, ends) == [threshold, 0, threshold]
    assert len(asked) <= 4


@examples(100)
@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_positions_between_two_ends_stay_within_them(first, last, extra):
    first, last = sorted((first, last))
    chosen = spread(first, last, extra)
    assert {first, last} <= chosen <= set(range(first, last + 1))
    assert len(chosen) <= extra + 2


def test_the_last_replica_that_pays_shortens_the_wait_by_the_gain():
    times = np.array([10.0, 5.0, 4.0, 3.99, 3.98])
    assert last_worthwhile([1, 2, 3, 4, 5], times, 1.01) == 2
    assert last_worthwhile([1, 2, 3, 30], np.array([10.0, 5.0, 4.0, 3.5]), 1.01) == 2
    assert last_worthwhile([1], times[:1], 1.01) == 0
