"""Random accelerators, models, splits and workloads, all of them legal."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

from advisor.core.architecture import Architecture, Layer
from advisor.core.hardware import HardwareProfile, Interconnect, Price
from advisor.core.layouts import Layout, Split
from advisor.core.mixers import GroupedQueryAttention, LatentAttention
from advisor.core.mlps import DenseMlp, MoeMlp
from advisor.core.model import ModelProfile
from advisor.core.parallelism import tensor_parallel_faults
from advisor.core.workload import BURSTIEST_MODELLED, Length, Workload
from tests.core.profiles import CONFIGS, IDEAL, model

EFFICIENCIES = (
    "bandwidth_efficiency", "gemm_efficiency", "fp8_gemm_factor", "expert_bandwidth_factor",
    "expert_gemm_factor", "mla_attention_factor", "overlap_residue", "link_efficiency",
    "shared_link_efficiency", "network_efficiency",
)  # fmt: skip
FIXED_COSTS = (
    "layer_overhead_us", "moe_layer_overhead_us", "step_overhead_ms", "moe_step_overhead_ms",
    "latent_layer_overhead_us", "sequence_overhead_us",
    "front_end_ms", "moe_front_end_ms", "collective_latency_us", "shared_collective_latency_us",
    "network_latency_us", "front_end_token_us", "collective_skew_us", "collective_growth_us",
    "shared_collective_growth_us",
)  # fmt: skip


ALIKE = {
    "cache_bandwidth_efficiency": "bandwidth_efficiency",
    "moe_sequence_overhead_us": "sequence_overhead_us",
    "latent_front_end_ms": "front_end_ms",
}
"""Coefficients that are given what another of their kind draws."""


class NoConstantsOfTheCode(HypothesisProvider):
    """Draws of chance alone. Hypothesis mixes in numbers that stand in whatever modules are loaded,
    so that a property would see other examples when any of them changes."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


AVAILABLE_PROVIDERS["no-constants"] = NoConstantsOfTheCode


def examples(count: int) -> settings:
    """Settings of a property: the same examples in every run, so that a failure repeats; what
    fails is not made smaller, which would take minutes where an example is a whole plan."""
    phases = (Phase.explicit, Phase.generate)
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=phases,
        backend="no-constants",
    )


def spread(low: float, high: float) -> st.SearchStrategy[float]:
    """A number evenly spread over the magnitudes between two others, with four digits."""
    return st.floats(0, 1).map(lambda part: float(f"{low * (high / low) ** part:.4g}"))


@st.composite
def accelerators(draw: st.DrawFn) -> HardwareProfile:
    """Any accelerator, from a small card to what is not built yet; some reach all of their peaks,
    some have efficiencies of their own."""
    bf16 = draw(spread(20, 5000))
    tflops = {"bf16": bf16} | draw(st.sampled_from([{}, {"fp8": 2 * bf16}, {"fp16": bf16}]))
    domain = draw(st.sampled_from([1, 2, 4, 8, 16]))
    topology = draw(st.sampled_from(["switched", "mesh", "shared"]))
    link = Interconnect("other", topology, draw(spread(10, 2000)), domain) if domain > 1 else None
    overrides = draw(st.sampled_from([{}, IDEAL, None]))
    if overrides is None:
        overrides = {name: draw(spread(0.05, 1)) for name in EFFICIENCIES}
        overrides |= {name: draw(spread(0.1, 30)) for name in FIXED_COSTS}
        overrides |= {name: overrides[like] for name, like in ALIKE.items()}
    return HardwareProfile(
        name="any",
        vendor="any",
        generation=draw(st.sampled_from(["", "hopper", "ampere", "cdna3", "blackwell"])),
        memory_gib=draw(spread(16, 400)),
        memory_bandwidth_gb_s=draw(spread(200, 20_000)),
        dense_tflops=tflops,
        interconnect=link,
        network_gb_s_per_direction=draw(spread(5, 200)),
        accelerators_per_node=domain,
        price=Price(Decimal(draw(st.integers(1, 5000))) / 100, "USD", None, ""),
        efficiency=overrides,
    )


class DrawnModel(ModelProfile):
    """A model that tells its kinds of layers apart from their number, when a property fails."""

    def __repr__(self) -> str:
        shape = self.architecture
        kinds = ", ".join(f"{count} x {layer}" for layer, count in shape.layer_counts.items())
        sizes = f"hidden {shape.hidden_size}, vocabulary {shape.vocab_size}"
        return f"<{self.name}: {sizes}, tied {shape.tied_embeddings}, {kinds}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints; it would write out every layer of a dataclass."""
        printer.text(repr(self))


@st.composite
def models(draw: st.DrawFn) -> ModelProfile:
    """A known model, or one of any shape."""
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(CONFIGS)))
        return DrawnModel(name, model(name).architecture)
    heads, size = 2 ** draw(st.integers(2, 6)), draw(st.sampled_from([64, 128]))
    hidden, width = 64 * draw(st.integers(8, 128)), 64 * draw(st.integers(16, 256))
    mixers: list[Any] = [
        GroupedQueryAttention(
            heads, 2 ** draw(st.integers(0, heads.bit_length() - 1)), size,
            window=draw(st.sampled_from([None, None, 128, 4096])),
        ),
        LatentAttention(heads, draw(st.sampled_from([None, 512])), 256, 64, 32, 64),
    ]  # fmt: skip
    experts = 2 ** draw(st.integers(1, 8))
    mlps: list[Any] = [
        DenseMlp(width, gated=draw(st.booleans())),
        MoeMlp(experts, draw(st.integers(1, min(experts // 2, 8))), width // 4, width),
    ]
    layers = draw(
        st.lists(
            st.builds(Layer, st.sampled_from(mixers), st.sampled_from(mlps)),
            min_size=1,
            max_size=3,
        )
    )
    shape = Architecture(
        family="any",
        hidden_size=hidden,
        vocab_size=draw(st.integers(1000, 200_000)),
        context_length=131_072,
        tied_embeddings=draw(st.booleans()),
        layers=tuple(layers) * draw(st.integers(1, 30)),
    )
    return DrawnModel("any", shape)


@st.composite
def splits(draw: st.DrawFn, of: ModelProfile, on: HardwareProfile, deepest: int = 4) -> Split:
    """A valid split of a model on an accelerator, its links sufficing."""
    shape = of.architecture
    degrees = [n for n in of.valid_tensor_parallel if n <= on.largest_domain]
    ranks = draw(st.sampled_from(degrees or [1]))
    experts = 1
    if shape.moe and not tensor_parallel_faults(shape, ranks, ranks):
        experts = draw(st.sampled_from([1, ranks]))
    return Split(
        tensor_parallel=ranks,
        pipeline_parallel=draw(st.integers(1, min(deepest, len(shape.layers)))),
        expert_parallel=experts,
        weights=draw(st.sampled_from(["bf16", "fp8", "int4_awq"])),
        kv_cache=draw(st.sampled_from(["bf16", "fp8"])),
    )


@st.composite
def served_layouts(draw: st.DrawFn, deepest: int = 4) -> tuple[ModelProfile, Layout]:
    """A model on an accelerator."""
    of, on = draw(models()), draw(accelerators())
    return of, Layout(on, draw(splits(of, on, deepest)))


@st.composite
def lengths(draw: st.DrawFn, low: float, high: float) -> Length:
    """A length, alike for all requests or log-normal."""
    mean = draw(spread(low, high))
    if draw(st.booleans()):
        return Length(mean)
    return Length(mean, mean * draw(st.floats(1.01, 3.8)))


@st.composite
def workloads(draw: st.DrawFn, /, most_cv: float = 20.0, **load: Any) -> Workload:
    """Lengths and their variability, under the load given."""
    variations = [0.0, 0.5, 1.0, 1.0, BURSTIEST_MODELLED, 20.0]
    return Workload(
        draw(lengths(1, 8000)),
        draw(lengths(2, 2000)),
        arrival_cv=draw(st.sampled_from([cv for cv in variations if cv <= most_cv])),
        prefix_cache_hit=draw(st.sampled_from([0.0, 0.0, 0.5, 1.0])),
        **load,
    )
