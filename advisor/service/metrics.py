"""What use cases count, for Prometheus; worker processes add up (`advisor/gunicorn_conf.py`)."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

plan_seconds = Histogram(
    "advisor_plan_seconds", "Time to compute a plan, the database left out.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
plan_candidates = Histogram(
    "advisor_plan_candidates", "Plans that were evaluated to answer a request.",
    buckets=(1, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000),
)  # fmt: skip
findings_total = Counter(
    "advisor_findings_total", "Findings of terminology checks.", ["rule", "status"]
)
profile_cache_total = Counter(
    "advisor_profile_cache_total",
    "Profiles that plans named: parsed before (hit) or anew (miss).",
    ["kind", "result"],
)
sweep_items_total = Counter("advisor_sweep_items_total", "Questions of sweeps that were answered.")
sweep_item_seconds = Histogram(
    "advisor_sweep_item_seconds", "Mean time to answer a question of a sweep, of each chunk.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
