"""Optimization techniques: the catalogue, and advice on a plan."""

from __future__ import annotations

from typing import Any

from marshmallow import ValidationError, validates_schema

from advisor.core.techniques.catalogue import FAMILIES, GROUPS, catalogue
from advisor.core.techniques.combinations import INTERACTIONS
from advisor.core.techniques.outcome import MEASURES, ROLES
from advisor.core.techniques.outcome import VERDICTS as EFFECTS
from advisor.core.techniques.transfer import OVER
from advisor.core.workload import OBJECTIVES
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import AnyJson, MessageAnswer, PageQuery, page_of
from advisor.schemas.containers import Either, ListOf, Section
from advisor.schemas.faults import fault, loaded
from advisor.schemas.fields import Choice, Flag, Number, Text, Whole
from advisor.schemas.models import ModelProfileBody
from advisor.schemas.plan_answer import BatchingAnswer, PlanInputsAnswer
from advisor.schemas.plan_explanation import FiguresAnswer, WayAnswer
from advisor.schemas.plans import PlanBody
from advisor.schemas.workload import SpeculativeBody

NAMES = tuple(catalogue())


class SourceAnswer(Answer):
    """Who published a technique."""

    title = Text()
    url = Text("Address of the source.")


class TechniqueAnswer(Answer):
    """An optimization technique."""

    name = Choice("", NAMES)
    title = Text()
    family = Choice("`model`: the model or how it decodes; `service`: how it is served.", FAMILIES)
    group = Choice("What it is about.", GROUPS)
    changes = Text("What it changes.")
    formulas = ListOf(Text(), "In which terms of a plan.")
    price = Text("What it costs.")
    helps = Text("When it helps.")
    hurts = Text("When it hurts.")
    not_computed = Text("What no formula here computes.")
    sources = ListOf(Section(SourceAnswer))


TechniquePage: type[Answer] = page_of(TechniqueAnswer, "TechniquePage")


class TechniqueQuery(PageQuery):
    """Which techniques to list."""

    family = Choice("Only those of this family.", FAMILIES, load_default=None)


class AdviceBody(Closed):
    """A plan to be improved: a stored one, or a plan request; one of the two is given."""

    plan_id = Text("Id of a stored plan.", 100, shortest=1, allow_none=True, load_default=None)
    plan = Section(
        PlanBody, "A plan request, as `POST /v1/plans` takes it.", allow_none=True,
        load_default=None,
    )  # fmt: skip
    objective = Choice(
        "What is to be improved on the plan's hardware; null: the plan's objective.", OBJECTIVES,
        allow_none=True, load_default=None,
    )  # fmt: skip
    techniques = ListOf(
        Choice("", NAMES), "Techniques to try; empty: all.", most=len(NAMES), unique=True,
        load_default=list,
    )  # fmt: skip
    distilled_model = Either(
        Text("Name or alias of a model profile.", 200, shortest=1), ModelProfileBody,
        "A smaller model that would take the place of the plan's, by name or whole.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    speculative = Section(
        SpeculativeBody, "How drafts would be accepted; null: not known, a range is tried.",
        allow_none=True, load_default=None,
    )  # fmt: skip
    prefix_cache_hit = Number(
        "Share of input tokens that a prefix cache would hold; null: not known, a range is tried.",
        0, 1, allow_none=True, load_default=None,
    )  # fmt: skip

    @validates_schema
    def one_plan(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a body without a plan, and one with two."""
        if (data["plan_id"] is None) == (data["plan"] is None):
            detail = "Give either plan_id or plan."
            raise ValidationError({"plan": fault(detail, allowed=["plan_id", "plan"]).messages})


def loaded_advice(document: Any) -> dict[str, Any]:
    """A request for advice that did not come as the body of one; as `loaded`."""
    return loaded(AdviceBody(), document)


class PoolAnswer(WayAnswer):
    """Replicas that do the same work, and the memory of each."""

    role = Choice("`all`: prompts and answers; else one of the two.", ROLES)
    weights_gib = Number("Weights [GiB per accelerator].")
    kv_cache_gib = Number("Left for the KV cache [GiB per accelerator].")
    kv_capacity_tokens = Whole("Tokens the KV cache holds [per replica].")
    max_concurrency = Whole("Requests of this workload that fit at once [per replica].")
    slots = Whole("Most sequences of a batch [per replica].")


class OutcomeAnswer(FiguresAnswer):
    """A plan in figures."""

    model = Text("Name of the model profile.")
    pools = ListOf(Section(PoolAnswer), "One pool, or a prefill pool and a decode pool.")
    accelerators = Whole("Of all pools.")
    output_tokens_per_s = Number("Under this load.", allow_none=True)
    slo_met = Flag("Every SLO is met.")


class EffectAnswer(Answer):
    """One plan against another, by what the objective measures."""

    verdict = Choice("`no_change`: by less than 0.5 %.", EFFECTS)
    measure = Choice("What is compared.", MEASURES)
    value_before = Number("Of the plan as it is.", allow_none=True)
    value_after = Number("With the technique.", allow_none=True)
    change = Number("Of the value, as a share of what it was.", allow_none=True)
    times_better = Number(
        "2: half the cost or latency, or twice the tokens; null: one of the plans is not within "
        "the limits, or has no such value.",
        allow_none=True,
    )


class GoodCaseAnswer(Answer):
    """The same technique where what is not known turns out well."""

    setting = AnyJson("What was assumed.")
    after = Section(OutcomeAnswer, allow_none=True)
    effect = Section(EffectAnswer)


class TechniqueAdviceAnswer(Answer):
    """What a technique, in one setting, would do to a plan."""

    name = Choice("", NAMES)
    title = Text()
    family = Choice("", FAMILIES)
    setting = AnyJson("What was changed, by name.")
    applies = Flag("Whether it can be tried on this plan.")
    reason = Text("Why it does not apply; null: it does.", allow_none=True)
    verdict = Choice("`depends`: a poor and a good case differ.", EFFECTS, allow_none=True)
    before = Section(OutcomeAnswer, "The plan as it is; null: none fits.", allow_none=True)
    after = Section(
        OutcomeAnswer, "The plan that the planner makes with it; null: it does not apply.",
        allow_none=True,
    )  # fmt: skip
    effect = Section(EffectAnswer, allow_none=True)
    in_place = Section(
        OutcomeAnswer, "The same accelerators, split as they are, with it; null: it is another "
        "deployment, or cannot be.", allow_none=True,
    )  # fmt: skip
    good_case = Section(
        GoodCaseAnswer, "Where the effect hangs on what is not known, `after` is a poor case and "
        "this a good one; null: it is known.", allow_none=True,
    )  # fmt: skip
    pays_from_acceptance_rate = Number(
        "Of speculative decoding: from which acceptance rate on answers on the same accelerators "
        "are no slower on average; null: from none, or not of this technique.",
        allow_none=True,
    )
    text = Text("The same in sentences.")


class CombinationAnswer(Answer):
    """Two techniques at once."""

    techniques = ListOf(Choice("", NAMES), "The two.")
    setting = AnyJson("What was changed, by name.")
    how = Text("How they interact.")
    after = Section(OutcomeAnswer, "The plan that the planner makes with both.")
    effect = Section(EffectAnswer)
    gains = ListOf(Number("In the unit of the measure.", allow_none=True), "Of each by itself.")
    gain_together = Number("Of both, in the unit of the measure.", allow_none=True)
    interaction = Choice("Both together beside the sum of each.", INTERACTIONS)
    text = Text("The same in a sentence.")


class TransferAnswer(Answer):
    """The KV cache of a mean prompt on its way from one pool to the other."""

    over = Choice("The fast link where it joins both pools, else the network.", OVER)
    ranks = Whole("Ranks that send a part of it at once.")
    bandwidth_gb_s_per_direction = Number("That one rank reaches.")
    transferred_bytes_per_request = Number("KV cache and recurrent state of a mean prompt.")
    transfer_ms = Number("Alone on the link.")


class DisaggregationAnswer(Answer):
    """Two pools beside one of as many accelerators."""

    accelerators = Whole("Of both pools.")
    transfer = Section(TransferAnswer)
    prefill_saturation_requests_per_s = Number("The most that the prefill pool serves.")
    decode_saturation_requests_per_s = Number("The most that the decode pool serves.")
    disaggregated = Section(OutcomeAnswer)
    aggregated = Section(
        OutcomeAnswer, "As many accelerators in one pool, at their best; null: no layout takes "
        "exactly as many.", allow_none=True,
    )  # fmt: skip


class NotComputableAnswer(Answer):
    """What is not computed of a technique."""

    technique = Choice("", NAMES)
    detail = Text()


class AdviceInputsAnswer(Answer):
    """The request with every default filled in."""

    plan_id = Text(allow_none=True)
    plan = Section(PlanInputsAnswer, "The plan request.")
    objective = Choice("", OBJECTIVES)
    techniques = ListOf(Choice("", NAMES), "Those tried.")
    distilled_model = Text("Name of the model.", allow_none=True)
    speculative = Section(SpeculativeBody, allow_none=True)
    prefix_cache_hit = Number(allow_none=True)


class AdviceAnswer(Answer):
    """Which techniques would help a plan."""

    inputs = Section(AdviceInputsAnswer)
    objective = Choice("What effects are measured by.", OBJECTIVES)
    measure = Choice("What the objective measures under this load.", MEASURES)
    before = Section(OutcomeAnswer, "The plan as it is; null: none fits.", allow_none=True)
    reason = Text("Why there is no plan as it is; null: there is.", allow_none=True)
    techniques = ListOf(
        Section(TechniqueAdviceAnswer),
        "Each setting of each technique, best effect first, those that do not apply last.",
    )
    combinations = ListOf(Section(CombinationAnswer), "Pairs that interact, best effect first.")
    batching = ListOf(
        Section(BatchingAnswer),
        "The same accelerators without batches, with static and with continuous ones; empty where "
        "they are not known: with speculative decoding, or where no plan fits.",
    )
    disaggregation = Section(
        DisaggregationAnswer, "null: it does not apply, or was not asked for.", allow_none=True
    )
    not_computable = ListOf(Section(NotComputableAnswer), "Of the techniques that apply.")
    explanation = ListOf(Text(), "What helps, in sentences.")
    assumptions = ListOf(Section(MessageAnswer), "What the figures rest on.")
    warnings = ListOf(Section(MessageAnswer))
    planner_version = Text()
