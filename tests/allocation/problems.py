"""Random allocation problems."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from advisor.allocation.capacity import Capacity
from advisor.allocation.problem import OBJECTIVES, Demand, Device, Option, Problem


def capacity(random: np.random.Generator) -> Capacity:
    """Linear, with spares, rising with the pool, or any that does not fall."""
    each = float(random.integers(4, 40)) / 48
    kind = random.integers(4)
    if kind == 0:
        return Capacity.linear(each)
    if kind == 1:
        return Capacity((0.0,) * int(random.integers(1, 3)), each)
    if kind == 2:
        pooled = [k * each * (1 - 0.5 / k) for k in (1, 2, 3)]
        return Capacity(tuple(pooled), each)
    steps = random.integers(0, 20, 3) / 48
    return Capacity(tuple(float(x) for x in np.cumsum(steps)), each)


def small(random: np.random.Generator) -> Problem:
    """Up to three demands and devices, few enough units for every way to be tried."""
    devices = tuple(
        Device(
            f"d{i}", f"k{i % 2}", int(random.integers(0, 7)),
            Decimal(int(random.integers(0, 30))) / 10, float(random.integers(50, 900)),
            int(random.choice([1, 1, 2, 4])),
        )
        for i in range(random.integers(1, 4))
    )  # fmt: skip
    demands = tuple(
        Demand(
            f"q{i}",
            tuple(
                Option(int(random.integers(len(devices))), int(random.choice([1, 2, 3, 4])),
                       capacity(random))
                for _ in range(random.integers(0, 4))
            ),
            None if random.random() < 0.4 else float(random.integers(1, 9)),
            int(random.integers(2, 9)) if random.random() < 0.2 else None,
        )
        for i in range(random.integers(1, 4))
    )  # fmt: skip
    return Problem(demands, devices, str(random.choice(OBJECTIVES)))


def large(demands: int, devices: int, seed: int, weighted: float = 0.0) -> Problem:
    """As many demands and kinds of devices, each with layouts of 1 to 8 accelerators on every
    device; some three of four units are taken."""
    random = np.random.default_rng(seed)
    speed = random.uniform(0.5, 4, devices)
    kinds = tuple(
        Device(
            f"d{i}", f"d{i}", int(random.integers(40, 200)),
            Decimal(int(100 * speed[i] * random.uniform(0.8, 1.5))) / 100,
            float(int(300 * speed[i])),
        )
        for i in range(devices)
    )  # fmt: skip
    return Problem(
        tuple(
            Demand(f"q{i}", _layouts(random, speed),
                   float(random.integers(1, 100)) if random.random() < weighted else None)
            for i in range(demands)
        ),
        kinds,
    )  # fmt: skip


def _layouts(random: np.random.Generator, speed: np.ndarray) -> tuple[Option, ...]:
    need = random.uniform(4, 40)
    options = []
    for device, each in enumerate(speed):
        fits, scaling = random.integers(0, 3), random.uniform(0.7, 1.1)
        for power in range(fits, 4):
            share = 2**power * each * scaling**power * random.uniform(0.9, 1.1) / need
            options.append(Option(device, 2**power, Capacity.linear(min(share, 1.0))))
    return tuple(options)
