"""SLOs on latencies: which plans meet them, by how much, and for which share of requests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.core.load import Served
from advisor.core.units import MS_PER_S

Array = NDArray[np.float64]


def meets_slos(served: Served, slo: Mapping[str, float], gaps: float) -> NDArray[np.bool_]:
    """Which rows meet every SLO; see `slo_ratios`."""
    met = np.ones(len(served.utilization), dtype=bool)
    for ratio in slo_ratios(served, slo, gaps).values():
        met &= ratio <= 1
    return met


def slo_ratios(served: Served, slo: Mapping[str, float], gaps: float) -> dict[str, Array]:
    """Predicted value over limit for each SLO, (rows,).

    A latency that is not defined misses its SLO (inf), but for that of gaps where requests have
    none (`gaps` is their mean number).
    """
    ratios = {}
    for key, limit_ms in slo.items():
        metric, statistic, _ = key.split("_")
        value = served.latency[metric].at(statistic) * MS_PER_S
        missing = 0.0 if metric in ("tpot", "itl") and not gaps else np.inf
        ratios[key] = np.where(np.isnan(value), missing, value / limit_ms)
    return ratios


def attainment(served: Served, slo: Mapping[str, float], gaps: float) -> Array:
    """Share of requests within the limits of every latency that has a percentile SLO, (rows,).

    Latencies are taken as independent; they rise together, so the joint share is no smaller.
    """
    shares: dict[str, Array] = {}
    for key, limit_ms in slo.items():
        metric, statistic, _ = key.split("_")
        if statistic != "mean" and (gaps or metric not in ("tpot", "itl")):
            share = served.latency[metric].share_within(limit_ms / MS_PER_S)
            shares[metric] = np.minimum(shares.get(metric, share), share)
    joint = np.ones(len(served.utilization))
    for share in shares.values():
        joint = joint * share
    return joint
