"""What an all-reduce costs, against published measurements of kernels.

`data/all_reduce.csv` holds times by accelerator, ranks and bytes: the median of the kernels that
engines choose (vLLM, SGLang, TensorRT-LLM, in CUDA graphs but on Arc), the fastest of them, and
NCCL, RCCL or oneCCL. Measured in loops of collectives alone, they have no skew between ranks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from advisor.core.coefficients import coefficient
from advisor.core.collectives import (
    NO_LINK,
    all_reduce_seconds,
    all_to_all_seconds,
    columns,
    link_of,
)
from advisor.core.hardware import HardwareProfile, Interconnect
from tests.core.profiles import IDEAL, device, layout

KIB, MIB = 2**10, 2**20


class Measured(NamedTuple):
    """One row: the accelerator and its link, ranks, bytes, and seconds by kind of kernel."""

    hardware: HardwareProfile
    ranks: int
    size: int
    engines: float | None
    fastest: float | None
    library: float | None

    @property
    def topology(self) -> str:
        link = self.hardware.interconnect
        assert link is not None
        return link.topology

    @property
    def predicted(self) -> float:
        """Seconds of the kernel alone."""
        link = link_of(layout(self.hardware, tensor_parallel=self.ranks), self.ranks, "vllm")
        return all_reduce_seconds(
            self.size, self.ranks, 0.0, link.latency, link.bandwidth, minimum=min
        )


def measured() -> Iterator[Measured]:
    with (Path(__file__).parent / "data/all_reduce.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            link = Interconnect(
                "other", row["topology"], float(row["link_gb_s"]), int(row["domain"])
            )
            on = replace(
                device("h100"),
                name=row["device"],
                generation=row["generation"],
                interconnect=link,
            )
            times = (
                float(row[f"{kind}_us"]) * 1e-6 if row[f"{kind}_us"] else None
                for kind in ("engines", "fastest", "library")
            )
            yield Measured(on, int(row["ranks"]), int(row["bytes"]), *times)


MEASURED = tuple(measured())


def errors(topology: str, generation: str, least: int = 16 * KIB, most: int = 64 * MIB):
    """Relative errors against the kernels of engines."""
    return np.array(
        [
            row.predicted / row.engines - 1
            for row in MEASURED
            if row.topology == topology and row.hardware.generation == generation
            and row.engines and least <= row.size <= most
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("topology", "generation", "median", "nine_in_ten"),
    [
        ("switched", "ampere", 0.10, 0.25),
        ("switched", "hopper", 0.10, 0.20),
        ("switched", "blackwell", 0.10, 0.20),
        ("mesh", "cdna3", 0.10, 0.30),
        ("mesh", "cdna4", 0.10, 0.15),
        ("shared", "blackwell", 0.10, 0.30),
        ("shared", "ada", 0.10, 0.40),  # over eight the share falls with the size too
        ("shared", "battlemage", 0.15, 0.60),  # without graphs the launch hides the sending
    ],
)
def test_kernels_of_engines_take_as_long_as_measured(topology, generation, median, nine_in_ten):
    found = errors(topology, generation)
    assert len(found) >= 6
    assert np.median(np.abs(found)) <= median
    assert np.quantile(np.abs(found), 0.9) <= nine_in_ten


def test_nothing_is_far_off_where_prompts_are_long():
    """Over switched links at 64 and 128 MiB, which a chunk of 4,096 to 8,192 tokens exchanges."""
    for generation in ("ampere", "hopper", "blackwell"):
        assert np.abs(errors("switched", generation, 64 * MIB, 128 * MIB)).max() <= 0.3


def test_libraries_reach_the_same_bandwidth_over_eight_of_a_mesh():
    """RCCL on eight MI300X; its small sizes include a launch of 40 microseconds and more."""
    rows = [r for r in MEASURED if r.topology == "mesh" and r.library and r.size >= 32 * MIB]
    assert len(rows) == 3
    for row in rows:
        assert row.predicted == pytest.approx(row.library, rel=0.15)


@pytest.mark.parametrize("name", sorted({row.hardware.name for row in MEASURED}))
def test_nothing_is_faster_than_its_bytes_over_the_link(name):
    """A rank sends 2 (r - 1) / r of the buffer; neither kernels nor the model do in less time."""
    for row in MEASURED:
        link = row.hardware.interconnect
        if row.hardware.name != name or link is None:
            continue
        peers = (row.ranks - 1) / (link.domain_size - 1) if link.topology == "mesh" else 1
        sent = 2 * (row.ranks - 1) / row.ranks * row.size
        least = sent / (link.bandwidth_gb_s_per_direction * 1e9 * peers)
        assert row.predicted >= least
        assert all(each >= least for each in (row.engines, row.fastest, row.library) if each)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16, 72])
@pytest.mark.parametrize("efficiency", [{}, IDEAL, IDEAL | {"link_exponent": 2.0}])
def test_no_link_has_more_than_its_data_sheet(ranks, efficiency):
    rack = Interconnect("nvlink", "switched", 900, 72)
    for generation in ("ampere", "hopper", "blackwell", ""):
        on = replace(
            device("h100"), generation=generation, interconnect=rack, efficiency=efficiency
        )
        bandwidth = link_of(layout(on, tensor_parallel=ranks), ranks, "vllm").bandwidth
        assert bandwidth <= 900e9 * (1 + 1e-12)
    assert not efficiency or bandwidth == pytest.approx(900e9)


def test_each_collective_in_a_step_also_waits_for_its_slowest_rank():
    eight = layout("h100", tensor_parallel=8)
    for engine in ("vllm", "tensorrt_llm", "sglang"):
        skew = coefficient("collective_skew_us", eight.hardware, engine) * 1e-6
        own = replace(eight.hardware, efficiency={"collective_skew_us": 0.0})
        waiting, alone = (
            link_of(replace(eight, hardware=on), 8, engine) for on in (eight.hardware, own)
        )
        for seconds in (
            lambda link: all_reduce_seconds(MIB, 8, link.skew, link.latency, link.bandwidth, min),
            lambda link: all_to_all_seconds(MIB, 8, link.skew, link.latency, link.bandwidth),
        ):
            assert seconds(waiting) - seconds(alone) == pytest.approx(skew)


def test_the_network_takes_over_past_the_fast_link():
    """50 us and 0.6 of 50 GB/s: two nodes of eight A100 took 41 to 71 us for 18 KiB."""
    link = link_of(layout("h100", tensor_parallel=16), 16, "vllm")
    assert (link.latency, link.bandwidth) == pytest.approx((50e-6, 30e9))
    seconds = all_reduce_seconds(18 * KIB, 16, 0.0, link.latency, link.bandwidth, min)
    assert 41e-6 <= seconds <= 71e-6


def test_one_rank_has_nothing_to_exchange():
    assert link_of(layout("h100"), 1, "vllm") == NO_LINK
    assert all_reduce_seconds(MIB, 1, 0.0, 0.0, np.inf, min) == 0
    assert all_to_all_seconds(MIB, 1, 0.0, 0.0, np.inf) == 0


def test_arrays_and_floats_agree():
    ranks = [1, 2, 8, 16]
    links = [link_of(layout("h100", tensor_parallel=r), r, "vllm") for r in ranks]
    sizes = np.array([[16.0 * KIB, MIB, 64.0 * MIB]])
    table = all_reduce_seconds(
        sizes, np.array(ranks, dtype=float)[:, None], *columns(links), np.minimum
    )
    for i, link in enumerate(links):
        for j, size in enumerate(sizes[0]):
            path = (link.skew, link.latency, link.bandwidth)
            assert table[i, j] == pytest.approx(all_reduce_seconds(size, ranks[i], *path, min))


def test_no_links_make_columns_without_rows():
    assert [column.shape for column in columns([])] == [(0, 1)] * 3
