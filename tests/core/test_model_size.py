"""Inference-aware sizes: published savings, and minima that neighbours confirm in 40 digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from advisor.core.economics.model_size import ModelSizeInputs, inference_aware_size
from advisor.core.economics.scaling_laws import SCALING_LAWS, ScalingLaw, scaling_law
from advisor.core.errors import InvalidInput


def ask(size: float, served: float, constants: str, other: float | None = None) -> ModelSizeInputs:
    return ModelSizeInputs(
        Fraction(size), Fraction(served), constants, None if other is None else Fraction(other)
    )


def cost(law: ScalingLaw, loss: Decimal, size: Decimal, served: Decimal) -> Decimal:
    """6 N D + 2 N D_inf at the D that the loss takes, in the precision of the context."""
    alpha, beta = Decimal(str(law.size_exponent)), Decimal(str(law.data_exponent))
    gap = loss - Decimal(str(law.irreducible)) - Decimal(str(law.size_factor)) / size**alpha
    tokens = (Decimal(str(law.data_factor)) / gap) ** (1 / beta)
    return 6 * size * tokens + 2 * size * served


@pytest.mark.parametrize("constants", SCALING_LAWS)
@pytest.mark.parametrize(("size", "served"), [(13e9, 2e12), (70e9, 1e12), (1e9, 1e14)])
def test_any_size_a_little_off_costs_more(constants: str, size: float, served: float):
    law = scaling_law(constants)
    found = inference_aware_size(ask(size, served, constants))
    assert found.optimal_parameters < size
    assert 0 < found.saving < 1
    with localcontext() as context:
        context.prec = 40
        best = Decimal(found.optimal_parameters)
        loss, asked = Decimal(found.loss), Decimal(served)
        least = cost(law, loss, best, asked)
        for factor in ("0.99999", "0.9999999", "1.0000001", "1.00001"):
            assert cost(law, loss, best * Decimal(factor), asked) > least


def test_the_published_check_needs_the_constants_of_the_papers_code():
    # Sardana et al.: a 13B model that serves 2T tokens gives way to a 7B, 17 % and 1.7e22 FLOP.
    savings = {}
    for name in SCALING_LAWS:
        other = inference_aware_size(ask(13e9, 2e12, name, 7e9)).alternative
        assert other is not None
        savings[name] = other
    right = savings["sardana_code"]
    assert right.saving == pytest.approx(0.17, abs=0.005)
    assert right.saving_flop == pytest.approx(1.7e22, rel=0.01)
    assert savings["hoffmann_rounded"].saving == pytest.approx(0.091, abs=5e-4)
    assert savings["besiroglu"].saving == pytest.approx(0.278, abs=5e-4)


def test_one_set_agrees_with_twenty_tokens_a_parameter():
    ratios = {name: law.best_tokens(13e9) / 13e9 for name, law in SCALING_LAWS.items()}
    assert ratios["besiroglu"] == pytest.approx(20, abs=0.1)
    assert ratios["sardana_code"] > 40


def test_without_serving_the_reference_is_the_optimum():
    found = inference_aware_size(ask(70e9, 0, "besiroglu"))
    assert found.optimal_parameters == pytest.approx(70e9, rel=1e-9)
    assert found.saving == pytest.approx(0, abs=1e-12)


def test_a_size_too_small_for_the_quality_is_infeasible_with_any_data():
    found = inference_aware_size(ask(70e9, 1e12, "sardana_code", 1e6))
    assert found.alternative is not None
    assert (found.alternative.status, found.alternative.tokens) == ("infeasible", None)


def test_an_unknown_set_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput) as refusal:
        ask(13e9, 2e12, "besirogl")
    assert refusal.value.errors[0].nearest == "besiroglu"
