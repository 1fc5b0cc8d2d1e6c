"""`python -m benchmarks` prints the benchmarks of functions. Those of a service under load, of the
explorer and of workers are run by name: `load`, `explorer_paint`, `sweep_workers`."""

from __future__ import annotations

from benchmarks import (
    allocation_time,
    core_time,
    many_profiles,
    request_cost,
    simulation_time,
    sweep,
    sweep_formats,
    sweep_memory,
    terminology_time,
)


def main() -> None:
    """Run them one after the other."""
    core_time.main()
    request_cost.main()
    simulation_time.main()
    terminology_time.main()
    allocation_time.main()
    many_profiles.main()
    sweep.main()
    sweep_formats.main()
    sweep_memory.main()


main()
