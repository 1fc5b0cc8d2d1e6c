"""Draws docs/economics.svg from the service's own code, for the case worked in docs/economics.md.

It needs matplotlib, which nothing else does:

    python -m venv /tmp/plot && /tmp/plot/bin/pip install matplotlib numpy
    PYTHONPATH=. /tmp/plot/bin/python docs/economics_plot.py
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advisor.core.economics.cash_flow import CashFlow
from advisor.core.economics.self_host import SelfHostInputs, self_host

MILLION = 10**6
SPENT = Fraction(5_576_000)
STEADY = CashFlow(
    revenue=Fraction(1_521_875), serving_cost=Fraction(608_750), fixed_cost=Fraction(200_000)
)
DECLINING = replace(
    STEADY, price_decline=Fraction("0.03"), cost_decline=Fraction("0.02"),
    annual_discount_rate=Fraction("0.15"),
)  # fmt: skip
REPLICAS = SelfHostInputs(
    Decimal("0.00007443702"), Decimal("2204.6"), Fraction(44_481_528), requests_per_month=None
)


def payback(axes: Axes) -> None:
    """Money recovered less what was spent, by month."""
    months = range(25)
    cases = (
        (STEADY, "steady", (-8, 6), "right"),
        (DECLINING, "price -3 %, cost -2 % a month, 15 % a year", (6, -12), "left"),
    )
    for flow, label, place, side in cases:
        net = [float(flow.recovered(Decimal(m)) - Decimal(int(SPENT))) / MILLION for m in months]
        axes.plot(months, net, label=label)
        found = flow.payback(SPENT).months
        if found is not None:
            axes.plot([float(found)], [0], "ko", markersize=4)
            axes.annotate(f"{float(found):.1f} months", (float(found), 0), place,
                          textcoords="offset points", ha=side, fontsize=8)  # fmt: skip
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_title("From training cost to payback")
    axes.set_xlabel("months")
    axes.set_ylabel("recovered less spent [million USD]")
    axes.legend(fontsize=8)


def steps(axes: Axes) -> None:
    """Both bills of a month by volume, and where self-hosting wins."""
    volumes = [Fraction(n * MILLION, 4) for n in range(1, 600)]
    own = [float(REPLICAS.cost(REPLICAS.replicas(v))) / 1000 for v in volumes]
    api = [float(v * Fraction(REPLICAS.api_cost_per_request)) / 1000 for v in volumes]
    axes.plot([float(v) / MILLION for v in volumes], own, label="own replicas")
    axes.plot([float(v) / MILLION for v in volumes], api, label="API")
    for each in self_host(REPLICAS).intervals:
        if each.winner == "self_host":
            end = volumes[-1] if each.until is None else each.until
            axes.axvspan(float(each.start) / MILLION, float(end) / MILLION, alpha=0.12, color="C0",
                         linewidth=0)  # fmt: skip
    axes.set_title("Own replicas are cheaper where shaded")
    axes.set_xlabel("million requests a month")
    axes.set_ylabel("bill of a month [thousand USD]")
    axes.legend(fontsize=8)


def main() -> None:
    """Write the picture, the same bytes each time."""
    mpl.rcParams.update({"svg.hashsalt": "advisor", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    payback(left)
    steps(right)
    figure.savefig(Path(__file__).with_suffix("").with_name("economics.svg"),
                   metadata={"Date": None, "Creator": None})  # fmt: skip


if __name__ == "__main__":
    main()
