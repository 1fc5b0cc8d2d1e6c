from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from advisor.sweeps.grid import Grid
from advisor.sweeps.ranges import Range, spanned
from advisor.sweeps.sizing import AIM_S, FIRST_ITEMS, MOST_ITEMS, chunk_items


def test_a_grid_has_the_questions_of_nested_loops_in_their_order():
    axes: dict[str, list[Any]] = {
        "model": ["a", "b", "c"],
        "hardware": [["x"], ["y"]],
        "objective": ["cost", "latency"],
    }
    grid = Grid(axes, {"verify": False})
    loops = [
        {"verify": False, "model": m, "hardware": h, "objective": o}
        for m, h, o in product(*axes.values())
    ]
    assert [grid.ask(item) for item in range(grid.total)] == loops


def test_a_million_questions_are_found_by_their_number_alone():
    grid = Grid({name: range(100) for name in ("model", "hardware", "workload")}, {})
    assert grid.total == 10**6
    assert grid.ask(123_456) == {"model": 12, "hardware": 34, "workload": 56}


@pytest.mark.parametrize(
    ("swept", "figures"),
    [
        (Range(1, 16, 5, "log"), [1, 2, 4, 8, 16]),
        (Range(0, 1, 5), [0, 0.25, 0.5, 0.75, 1]),
        (Range(8, 2, 4), [8, 6, 4, 2]),
        (Range(1, 1000, 4, "log"), [1, 10, 100, 1000]),
        (Range(3, 3, 1), [3]),
    ],
)
def test_a_range_is_spaced_evenly_or_by_a_factor(swept: Range, figures: list[float]):
    assert swept.figures() == figures


def test_a_range_may_begin_at_the_smallest_number_there_is():
    assert Range(5e-324, 1e9, 3, "log").figures(whole=True) == [0, 1_000_000_000]


def test_whole_figures_of_a_range_are_there_once():
    assert Range(1, 4, 7).figures(whole=True) == [1, 2, 3, 4]


def test_workloads_are_spanned_with_the_last_figure_moving_first():
    spans = spanned({"a": "swept", "c": 3}, {"a": [1, 2], "b": [5, 6]})
    assert [(each["a"], each["b"], each["c"]) for each in spans] == [
        (1, 5, 3), (1, 6, 3), (2, 5, 3), (2, 6, 3),
    ]  # fmt: skip


def test_chunks_are_as_large_as_the_time_taken_so_far_allows():
    assert chunk_items(done=0, spent_s=0, left=10**6) == FIRST_ITEMS
    assert chunk_items(done=10, spent_s=0.2, left=10**6) == AIM_S / 0.02
    assert chunk_items(done=10, spent_s=100, left=10**6) == 1
    assert chunk_items(done=10, spent_s=1e-9, left=10**6) == MOST_ITEMS
    assert chunk_items(done=10, spent_s=0.2, left=3) == 3


def test_two_workers_end_a_sweep_within_a_few_questions_of_one_another():
    """Each takes its next chunk when it has ended the one before; a question takes 10 ms."""
    left, busy_until_s = 600, [0.0, 0.0]
    while left:
        worker = busy_until_s.index(min(busy_until_s))
        done = 600 - left
        taken = chunk_items(done, done * 0.01, left)
        left -= taken
        busy_until_s[worker] += taken * 0.01
    assert abs(busy_until_s[0] - busy_until_s[1]) <= FIRST_ITEMS * 0.01
