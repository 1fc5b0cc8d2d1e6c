"""What a request costs at token prices: cached, reasoning and batch counted.

(uncached x p_in + cached x p_cached + (visible + reasoning) x p_out) / 1e6 x (1 - batch discount).
Reasoning tokens are billed as output although nobody sees them.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from advisor.core.economics.figures import AMOUNT, SHARE, quotient, refuse_outside, written

TOKENS_PER_MTOK = 10**6
_TOKENS = (
    "uncached_input_tokens", "cached_input_tokens", "visible_output_tokens",
    "reasoning_output_tokens",
)  # fmt: skip
_PRICES = ("input_per_mtok", "cached_input_per_mtok", "output_per_mtok")


@dataclass(frozen=True)
class RequestPriceInputs:
    """Tokens of one request (or of any number of them), and prices per million tokens.

    Without `cached_input_per_mtok` cached tokens cost what others do.
    """

    uncached_input_tokens: Fraction
    cached_input_tokens: Fraction
    visible_output_tokens: Fraction
    reasoning_output_tokens: Fraction
    input_per_mtok: Decimal
    output_per_mtok: Decimal
    cached_input_per_mtok: Decimal | None = None
    batch_discount: Fraction = Fraction(0)
    currency: str = "USD"

    def __post_init__(self) -> None:
        ranges = dict.fromkeys((*_TOKENS, *_PRICES), AMOUNT)
        refuse_outside(self, **ranges, batch_discount=SHARE)

    @property
    def tokens(self) -> Fraction:
        """All of them."""
        return sum((getattr(self, name) for name in _TOKENS), Fraction(0))

    @property
    def cached_price(self) -> Decimal:
        """What a million cached tokens cost."""
        cached = self.cached_input_per_mtok
        return self.input_per_mtok if cached is None else cached


@dataclass(frozen=True)
class RequestPrice:
    """Money: of the request, and of a million of its tokens (`None` where it has none).

    `per_request_without_cache` is the price if every input token were new, and
    `per_request_without_reasoning` if what nobody sees were not billed.
    """

    per_request: Decimal
    blended_per_mtok: Decimal | None
    by_part: dict[str, Decimal]
    per_request_without_cache: Decimal
    per_request_without_reasoning: Decimal


def request_price(inputs: RequestPriceInputs) -> RequestPrice:
    """The price of a request."""
    kept = 1 - inputs.batch_discount
    tokens_and_prices = {
        "uncached_input": (inputs.uncached_input_tokens, inputs.input_per_mtok),
        "cached_input": (inputs.cached_input_tokens, inputs.cached_price),
        "visible_output": (inputs.visible_output_tokens, inputs.output_per_mtok),
        "reasoning_output": (inputs.reasoning_output_tokens, inputs.output_per_mtok),
    }
    parts = {
        part: tokens * Fraction(price) / TOKENS_PER_MTOK * kept
        for part, (tokens, price) in tokens_and_prices.items()
    }
    total = sum(parts.values(), Fraction(0))
    uncached = inputs.cached_input_tokens * Fraction(inputs.input_per_mtok) / TOKENS_PER_MTOK * kept
    return RequestPrice(
        per_request=written(total),
        blended_per_mtok=(
            quotient(total / inputs.tokens * TOKENS_PER_MTOK) if inputs.tokens else None
        ),
        by_part={part: written(price) for part, price in parts.items()},
        per_request_without_cache=written(total - parts["cached_input"] + uncached),
        per_request_without_reasoning=written(total - parts["reasoning_output"]),
    )
