"""What other limits on latency would save: each SLO looser by 20 %, the others as they are."""

from __future__ import annotations

from typing import Any

from advisor.core.comparison import cost_difference, in_figures, in_short
from advisor.core.decision import Decision
from advisor.core.slo import slo_order
from advisor.core.units import plain, rounded_plain

LOOSER, TIGHTER = 1.2, 0.8

_SAVED = ("cost_per_hour", "cost_per_million_output_tokens")


def slo_sensitivity(plan: Decision) -> list[dict[str, Any]]:
    """What would be recommended if each SLO were 20 % looser; and 20 % tighter, where everything is
    to be explained."""
    factors = (LOOSER, TIGHTER) if plan.request.explain == "full" else (LOOSER,)
    now = None
    if plan.recommended is not None:
        now = in_figures(plan, plan.candidates, plan.recommended)
    return [
        _under(plan, now, slo, plan.request.slo[slo], factor)
        for slo in sorted(plan.request.slo, key=slo_order)
        for factor in factors
    ]


def _under(
    plan: Decision, now: dict[str, Any] | None, slo: str, limit_ms: float, factor: float
) -> dict[str, Any]:
    instead_ms = float(f"{limit_ms * factor:.12g}")
    answer = {"slo": slo, "limit_ms": limit_ms, "instead_ms": instead_ms}
    then, reason = None, _not_decided(plan, slo)
    if reason is None:
        other = plan.with_slo({**plan.request.slo, slo: instead_ms})
        if other.recommended is None:
            reason = "No plan meets every limit."
        else:
            then = in_figures(other, other.candidates, other.recommended)
    saved = dict.fromkeys(_SAVED)
    if now is not None and then is not None:
        saved = {key: cost_difference(now[key], then[key]) for key in _SAVED}
    return answer | {
        "plan": then,
        **{key.replace("cost", "saved"): amount for key, amount in saved.items()},
        "reason": reason,
    }


def _not_decided(plan: Decision, slo: str) -> str | None:
    """Why another limit is not looked at; None where it is."""
    if plan.request.workload.start == "burst":
        return "Each plan of a burst is simulated: ask with this limit."
    anew = plan.evaluator.batch_follows_slo and slo.startswith("tpot")
    if anew and plan.request.explain != "full":
        return "The batch follows this limit, so that every plan is another: ask with explain full."
    return None


def in_words(plan: Decision, sensitivity: list[dict[str, Any]]) -> list[str]:
    """Sentences on the looser SLOs that would change the choice, or that none would."""
    looser = [one for one in sensitivity if one["instead_ms"] > one["limit_ms"]]
    changes = [(one, _gain(plan, one)) for one in looser if one["plan"] is not None]
    lines = [
        f"With {one['slo']} at {plain(one['instead_ms'])} ms, 20 % looser: "
        f"{in_short(one['plan'])}, {gain}."
        for one, gain in changes
        if gain is not None
    ]
    if looser and not lines and all(one["plan"] for one in looser):
        change = "save anything" if plan.request.objective == "cost" else "change the choice"
        lines.append(f"No SLO that is 20 % looser would {change}.")
    return lines


def _gain(plan: Decision, one: dict[str, Any]) -> str | None:
    """What the other plan brings in the objective's terms; None where it is the same one, or costs
    the same where cost is all that counts."""
    then, objective = one["plan"], plan.request.objective
    if plan.recommended is None:
        return "which meets every limit"
    now = in_figures(plan, plan.candidates, plan.recommended)
    if in_short(then) == in_short(now) and then["precision"] == now["precision"]:
        return None
    if objective == "cost":
        saturated = plan.request.workload.mode == "saturated"
        key = "saved_per_million_output_tokens" if saturated else "saved_per_hour"
        unit = "per million output tokens" if saturated else "an hour"
        return None if one[key] == "0" else f"which saves {one[key]} {unit}"
    key, name = "e2e_p95_ms", "ms of p95 end-to-end latency"
    if objective == "throughput" or now[key] is None or then[key] is None:
        key, name = "saturation_output_tokens_per_s", "output tokens/s an accelerator at most"
        now, then = ({key: each[key] / each["accelerators"]} for each in (now, then))
    return f"{rounded_plain(then[key])} {name} instead of {rounded_plain(now[key])}"
