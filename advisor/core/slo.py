"""SLOs on latencies, of all requests and of single classes: which plans meet them, by how much, and
for which share of requests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.core.latency import Latency
from advisor.core.load import Served
from advisor.core.units import MS_PER_S
from advisor.core.workload import SLO_KEYS, Workload

Array = NDArray[np.float64]


def meets_slos(
    served: Served, slo: Mapping[str, float] | Mapping[str, Array], gaps: float
) -> NDArray[np.bool_]:
    """Which rows meet every SLO, of a limit for all or for each [ms]; see `slo_ratios`."""
    met = np.ones(len(served.utilization), dtype=bool)
    for ratio in slo_ratios(served, slo, gaps).values():
        met &= ratio <= 1
    return met


def slo_ratios(
    served: Served, slo: Mapping[str, float] | Mapping[str, Array], gaps: float
) -> dict[str, Array]:
    """Predicted value over limit for each SLO, (rows,).

    A latency that is not defined misses its SLO (inf), but for that of gaps where requests have
    none (`gaps` is their mean number).
    """
    ratios = {}
    for key, limit_ms in slo.items():
        metric, statistic, of = slo_parts(key)
        latency = served.classes[of] if of else served.latency
        value = latency[metric].at(statistic) * MS_PER_S
        missing = 0.0 if metric in ("tpot", "itl") and not gaps else np.inf
        ratios[key] = np.where(np.isnan(value), missing, value / limit_ms)
    return ratios


def slo_parts(key: str) -> tuple[str, str, str]:
    """Latency, statistic and class of an SLO; the class is empty where it is on all requests."""
    bound, _, of = key.partition("@")
    metric, statistic, _ = bound.split("_")
    return metric, statistic, of


def slo_order(key: str) -> tuple[str, int]:
    """Where an SLO stands in a list: those of all requests first, then class by class."""
    bound, _, of = key.partition("@")
    return of, SLO_KEYS.index(bound)


def attainment(served: Served, slo: Mapping[str, float], workload: Workload) -> Array:
    """Share of requests within the limits of every latency that has a percentile SLO, (rows,).

    Latencies are taken as independent in a class; they rise together, so the joint share is no
    smaller.
    """
    if not served.classes:
        return _attainment(served.latency, slo, workload.gaps)
    met = np.zeros(len(served.utilization))
    for one in workload.mix:
        own = {key: ms for key, ms in slo.items() if slo_parts(key)[2] in ("", one.name)}
        latency = {**served.latency, **served.classes[one.name]}
        met += one.share * _attainment(latency, own, one.gaps)
    return met


def _attainment(latency: Mapping[str, Latency], slo: Mapping[str, float], gaps: float) -> Array:
    shares: dict[str, Array] = {}
    for key, limit_ms in slo.items():
        metric, statistic, _ = slo_parts(key)
        if statistic != "mean" and (gaps or metric not in ("tpot", "itl")):
            share = latency[metric].share_within(limit_ms / MS_PER_S)
            shares[metric] = np.minimum(shares.get(metric, share), share)
    joint = np.ones(len(latency["ttft"].mean))
    for share in shares.values():
        joint = joint * share
    return joint
