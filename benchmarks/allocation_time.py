"""Time of large allocations, and how near the best they come."""

from __future__ import annotations

from advisor.allocation.dominance import without_dominated
from advisor.allocation.solve import Clock, solve
from tests.allocation.problems import large

DEMANDS, DEVICES, SEEDS, SECONDS = 40, 10, 3, 10.0


def main() -> None:
    """Print the seconds and the gap of some random problems."""
    print(f"Allocations: {DEMANDS} demands on {DEVICES} kinds of devices")
    for weighted, what in ((0.0, "all have to be served"), (0.5, "half of them by weight")):
        for seed in range(SEEDS):
            problem = large(DEMANDS, DEVICES, seed, weighted)
            options = sum(len(demand.options) for demand in problem.demands)
            kept = sum(len(demand.options) for demand in without_dominated(problem)[0].demands)
            print(f"  {what}, {options} options of which {kept} matter")
            for gap in (0.01, 0.001):
                clock = Clock(SECONDS)
                found = solve(problem, clock, gap)
                reached = "none" if found.gap is None else f"{found.gap:.3%}"
                print(
                    f"    gap {gap:.1%} asked for: {clock.spent_s:5.2f} s, {found.status}, "
                    f"gap {reached}, {len(found.pools)} pools"
                )


if __name__ == "__main__":
    main()
