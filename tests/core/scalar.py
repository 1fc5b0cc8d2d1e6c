"""The planner's step once more, number by number: plain loops over a config.json, no arrays.

It is slow and only knows what the tests need (one pipeline stage at a time, no attention-DP), and
takes nothing from the code that it checks but the coefficients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log2
from typing import Any

from advisor.core.coefficients import coefficient
from advisor.core.hardware import HardwareProfile

FORMAT_BYTES = {
    "bf16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0 + 4.0 / 16384,
    "int4_awq": 4.15625 / 8,
    "mxfp4": 4.25 / 8,
}
Config = Mapping[str, Any]


@dataclass
class Weight:
    """A matrix on one rank: its elements, those that a token meets, and whether it is quantized."""

    elements: float
    used: float
    quantized: bool
    expert: bool = False


@dataclass
class Attention:
    """One layer's attention on one rank."""

    window: float
    cached: float
    decode_flop: float
    prefill_flop: float


def is_moe(config: Config, layer: int) -> bool:
    """Whether a layer has experts."""
    return bool(expert_count(config)) and layer >= config.get("first_k_dense_replace", 0)


def expert_count(config: Config) -> int:
    """Routed experts of a layer; 0 for a dense model."""
    names = ("num_experts", "num_local_experts", "n_routed_experts")
    return next((config[name] for name in names if name in config), 0)


def head_dim(config: Config) -> int:
    """Size of a head."""
    fallback = config["hidden_size"] // config["num_attention_heads"]
    return int(config.get("head_dim") or fallback)


def vectors(config: Config, layer: int) -> float:
    """Parameters of a layer that are no matrices: norms, biases, sinks."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    total = 2.0 * hidden
    if "kv_lora_rank" in config:
        total += config["kv_lora_rank"] + (config["q_lora_rank"] or 0)
    if config["model_type"].startswith("qwen3"):
        total += 2 * head_dim(config)
    if config["model_type"] in ("qwen2", "gpt_oss"):
        total += (heads + 2 * config["num_key_value_heads"]) * head_dim(config)
    if config["model_type"] == "gpt_oss":
        inner = config["intermediate_size"]
        total += heads + hidden
        total += config["num_local_experts"] * (2 * inner + hidden + 1)
    if is_moe(config, layer) and config.get("topk_method") == "noaux_tc":
        total += expert_count(config)
    return total


def matrices(config: Config, layer: int, tp: int, ep: int = 1) -> Iterator[Weight]:
    """The matrices of one layer on one of `tp` ranks."""
    hidden = config["hidden_size"]
    only_experts = config["model_type"] == "gpt_oss"
    for elements in attention_matrices(config, tp):
        yield Weight(elements, elements, not only_experts)
    if not is_moe(config, layer):
        inner = 3 * hidden * config["intermediate_size"] / tp
        yield Weight(inner, inner, quantized=True)
        return
    count, used = expert_count(config), config["num_experts_per_tok"]
    one = 3 * hidden * (config.get("moe_intermediate_size") or config["intermediate_size"])
    on_rank = one / (tp / ep)
    yield Weight(hidden * count, hidden * count, quantized=False)
    yield Weight(count / ep * on_rank, used / ep * on_rank, quantized=True, expert=True)
    shared = config.get("n_shared_experts", 0) * one / tp
    yield Weight(shared, shared, quantized=True)


def attention_matrices(config: Config, tp: int) -> Iterator[float]:
    """Elements of each attention projection on one rank."""
    hidden, heads = config["hidden_size"], config["num_attention_heads"] / tp
    if "kv_lora_rank" not in config:
        yield hidden * heads * head_dim(config)
        yield 2 * hidden * max(1, config["num_key_value_heads"] // tp) * head_dim(config)
        yield heads * head_dim(config) * hidden
        return
    rank, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
    nope, value = config["qk_nope_head_dim"], config["v_head_dim"]
    if config["q_lora_rank"]:
        yield hidden * config["q_lora_rank"]
        yield config["q_lora_rank"] * heads * (nope + rope)
    else:
        yield hidden * heads * (nope + rope)
    yield hidden * (rank + rope)
    yield rank * heads * (nope + value)
    yield heads * value * hidden


def attention(config: Config, layer: int, tp: int) -> Attention:
    """What a layer's attention keeps and computes on one rank."""
    heads = config["num_attention_heads"] / tp
    if "kv_lora_rank" in config:
        rank, rope = config["kv_lora_rank"], config["qk_rope_head_dim"]
        wide = config["qk_nope_head_dim"] + rope + config["v_head_dim"]
        return Attention(1e15, rank + rope, 2 * heads * (2 * rank + rope), 2 * heads * wide)
    size = head_dim(config)
    flop = 4 * heads * size
    kinds = config.get("layer_types")
    sliding = config["model_type"] == "mistral" or (kinds and kinds[layer].startswith("sliding"))
    window = config["sliding_window"] if sliding else 1e15
    kept = 2 * max(1, config["num_key_value_heads"] // tp) * size
    return Attention(window, kept, flop, flop)


def vocabulary(config: Config, tp: int) -> float:
    """Elements of one rank's share of the LM head."""
    size = config["vocab_size"]
    if tp > 1:
        size = (size + 63) // 64 * 64
    return float(config["hidden_size"] * size / tp)


def stage_layers(config: Config, pp: int) -> list[range]:
    """The layers of each pipeline stage; odd ones go before the last stage."""
    count = config["num_hidden_layers"]
    sizes = [count // pp] * pp
    for extra in range(count % pp):
        sizes[pp - 2 - extra] += 1
    starts = [sum(sizes[:i]) for i in range(pp)]
    return [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]


def stage_bytes(config: Config, layers: range, tp: int, storage: str, ep: int = 1) -> float:
    """Bytes of all matrices that one rank of a stage stores, norms and biases left out."""
    total = 0.0
    for layer in layers:
        for weight in matrices(config, layer, tp, ep):
            total += weight.elements * FORMAT_BYTES[storage if weight.quantized else "bf16"]
    first, last = layers.start == 0, layers.stop == config["num_hidden_layers"]
    tables = int(first) + int(last)
    if first and last and config["tie_word_embeddings"]:
        tables = 1
    return total + tables * 2 * vocabulary(config, tp)


class ScalarStep:
    """A step of a one-stage layout, from scratch."""

    def __init__(
        self, config: Config, device: HardwareProfile, engine: str,
        tp: int = 1, storage: str = "bf16", kv_bytes: float = 2.0, ep: int = 1,
    ) -> None:  # fmt: skip
        self.config, self.device, self.engine = config, device, engine
        self.tp, self.ep, self.kv_bytes = tp, ep, kv_bytes
        self.hidden = config["hidden_size"]
        self.layers = range(config["num_hidden_layers"])
        self.moe_layers = sum(is_moe(config, layer) for layer in self.layers)
        self.experts, self.used = expert_count(config), config.get("num_experts_per_tok", 0)
        self.dense = {True: [0.0, 0.0], False: [0.0, 0.0]}
        self.expert_bytes = self.expert_flop = 0.0
        for layer in self.layers:
            for w in matrices(config, layer, tp, ep):
                size = FORMAT_BYTES[storage if w.quantized else "bf16"]
                if w.expert:
                    self.expert_bytes += size * w.elements * ep / self.experts
                    self.expert_flop += 2 * w.used
                else:
                    self.dense[w.quantized][0] += size * w.elements
                    self.dense[w.quantized][1] += 2 * w.used
        self.head = vocabulary(config, tp)
        self.kinds: dict[float, list[float]] = {}
        for layer in self.layers:
            one = attention(config, layer, tp)
            kind = self.kinds.setdefault(one.window, [0.0, 0.0, 0.0])
            kind[0] += one.cached * kv_bytes
            kind[1] += one.decode_flop
            kind[2] += one.prefill_flop
        self._rates(storage)

    def _rates(self, storage: str) -> None:
        kernel = "int4" if storage.startswith("int4") else storage
        get = {
            name: coefficient(name, self.device, self.engine, kernel)
            for name in (
                "bandwidth_efficiency", "cache_bandwidth_efficiency", "gemm_efficiency",
                "fp8_gemm_factor",
                "expert_gemm_factor", "expert_bandwidth_factor", "mla_attention_factor",
                "overlap_residue", "layer_overhead_us", "moe_layer_overhead_us",
                "step_overhead_ms", "moe_step_overhead_ms",
                "latent_layer_overhead_us", "sequence_overhead_us", "moe_sequence_overhead_us",
                "collective_skew_us", "collective_latency_us", "collective_growth_us",
                "link_efficiency", "link_exponent",
            )
        }  # fmt: skip
        tflops = self.device.dense_tflops
        self.peak = 1e12 * tflops["bf16"]
        self.fast_peak = self.peak
        low = get["gemm_efficiency"]
        if storage.startswith("fp8") and "fp8" in tflops:
            self.fast_peak = 1e12 * tflops["fp8"]
            low *= get["fp8_gemm_factor"]
        self.sheet = 1e9 * self.device.memory_bandwidth_gb_s
        self.bytes_s = self.sheet * get["bandwidth_efficiency"]
        self.cache_bytes_s = self.sheet * get["cache_bandwidth_efficiency"]
        self.flop_s = {True: low * self.fast_peak, False: get["gemm_efficiency"] * self.peak}
        self.expert_flop_s = self.flop_s[True] * get["expert_gemm_factor"]
        self.expert_bytes_s = self.bytes_s * get["expert_bandwidth_factor"]
        self.latent = get["mla_attention_factor"] if "kv_lora_rank" in self.config else 1.0
        self.residue = get["overlap_residue"]
        moe = self.experts > 0
        self.fixed = 1e-6 * get["layer_overhead_us"] * len(self.layers)
        self.fixed += 1e-6 * get["moe_layer_overhead_us"] * self.moe_layers
        self.fixed += 1e-3 * get["moe_step_overhead_ms" if moe else "step_overhead_ms"]
        if "kv_lora_rank" in self.config:
            self.fixed += 1e-6 * get["latent_layer_overhead_us"] * len(self.layers)
        self.each = 1e-6 * get["moe_sequence_overhead_us" if moe else "sequence_overhead_us"]
        doublings = log2(self.tp) - 1
        self.skew = 1e-6 * get["collective_skew_us"]
        self.alpha = 1e-6 * (get["collective_latency_us"] + doublings * get["collective_growth_us"])
        link = self.device.interconnect
        self.link = 1e9 * link.bandwidth_gb_s_per_direction if link else 0.0
        if link and link.topology == "mesh":
            self.link *= (self.tp - 1) / (link.domain_size - 1)
        elif self.tp > 1:
            self.link *= 2 ** (doublings * get["link_exponent"])
        self.link *= get["link_efficiency"]

    def seconds(
        self, decode: float, context: float, prefill: float = 0.0,
        pairs: float = 0.0, cached: float = 0.0, prompts: float = 0.0,
    ) -> float:  # fmt: skip
        """The step's time."""
        tokens = decode + prefill
        total = self.fixed + self.each * decode
        total += self._link_seconds(tokens, decode + prompts)
        for quantized, (size, flop) in self.dense.items():
            rate = self.flop_s[quantized]
            total += self._part(flop * tokens / rate, size / self.bytes_s)
        head_flop = 2 * self.head * (decode + prompts) / self.flop_s[False]
        total += self._part(head_flop, 2 * self.head / self.bytes_s)
        if self.experts:
            read = self.experts * (1 - (1 - self.used / self.experts) ** tokens)
            flop = self.expert_flop * tokens / self.expert_flop_s
            total += self._part(flop, self.expert_bytes * read / self.expert_bytes_s)
        flop = moved = 0.0
        for window, (kept, decode_flop, prefill_flop) in self.kinds.items():
            seen = min(context, window)
            count = max(prompts, 1.0)
            before, chunk = cached / count, prefill / count
            alone = max(min(window - before, chunk), 0.0)  # tokens whose past the window spans
            near = alone * before + alone * (alone + 1) / 2 + (chunk - alone) * window
            near_all = near * count if window < 1e12 else pairs
            flop += decode_flop * decode * seen + prefill_flop * min(pairs, near_all)
            before = min(cached, window * max(prefill > 0, 1))
            moved += kept * (decode * seen + before + tokens)
        attend = self._part(
            flop / (self.flop_s[False] * self.latent), moved / (self.cache_bytes_s * self.latent)
        )
        return total + attend

    def floor(self, decode: float, context: float) -> float:
        """What no step can go below."""
        size = 2 * self.head + sum(each[0] for each in self.dense.values())
        flop = 2 * self.head + sum(each[1] for each in self.dense.values())
        if self.experts:
            size += self.expert_bytes * self.used
            flop += self.expert_flop
        flop *= decode
        for window, (kept, decode_flop, _) in self.kinds.items():
            size += kept * decode * min(context, window)
            flop += decode_flop * decode * min(context, window)
        return max(size / self.sheet, flop / max(self.peak, self.fast_peak))

    def _part(self, compute: float, memory: float) -> float:
        return max(compute, memory) + self.residue * min(compute, memory)

    def _link_seconds(self, tokens: float, logits: float) -> float:
        if self.tp == 1:
            return 0.0
        ranks, size = self.tp, 2 * tokens * self.hidden
        one_shot = self.skew + self.alpha + (ranks - 1) * size / self.link
        two_shot = self.skew + 2 * self.alpha + 2 * (ranks - 1) / ranks * size / self.link
        count = 2 * len(self.layers) + 1
        gathered = 2 * logits * 2 * self.head / (2 * self.hidden)
        gather = self.skew + self.alpha + (ranks - 1) / ranks * gathered / self.link
        return count * min(one_shot, two_shot) + gather
