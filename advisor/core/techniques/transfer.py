"""The way of a prompt's KV cache from the replica that computed it to the one that decodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.core.answer import rounded
from advisor.core.collectives import Link, link_of
from advisor.core.layouts import Layout
from advisor.core.model import ModelProfile
from advisor.core.precision import KV_BYTES
from advisor.core.units import GB, MS_PER_S

OVER = ("interconnect", "network")


@dataclass(frozen=True)
class Transfer:
    """The KV cache of a mean prompt [bytes], over which link, how many ranks send it at once, and
    that link: its latency [s] and the bandwidth that one rank reaches [bytes/s]."""

    size: float
    over: str
    ranks: int
    link: Link

    @property
    def busy(self) -> float:
        """Time that the senders' links are busy with it [s]."""
        return self.size / (self.ranks * self.link.bandwidth)

    @property
    def seconds(self) -> float:
        """Time that it takes, alone on the link [s]."""
        return self.link.latency + self.busy

    def as_dict(self) -> dict[str, Any]:
        """The transfer in its API form."""
        return {
            "over": self.over,
            "ranks": self.ranks,
            "bandwidth_gb_s_per_direction": rounded(self.link.bandwidth / GB),
            "transferred_bytes_per_request": rounded(self.size),
            "transfer_ms": rounded(self.seconds * MS_PER_S),
        }


def transfer(
    model: ModelProfile, sender: Layout, receiver: Layout, accelerators: int, tokens: float,
    engine: str,
) -> Transfer:  # fmt: skip
    """Of a prompt of so many tokens, between two of the layouts' replicas among so many
    accelerators: over the fast link where it joins all of them, else over the network, which their
    device has."""
    device, kv_cache = sender.hardware, sender.split.kv_cache
    inside = accelerators <= device.largest_domain
    met = 2 if inside else device.largest_domain + 1
    shared = inside and device.interconnect is not None and device.interconnect.topology == "shared"
    ranks = min(_senders(model, each) for each in (sender, receiver))
    size = prompt_bytes(model, kv_cache, tokens)
    return Transfer(
        size, OVER[not inside], 1 if shared else ranks, link_of(sender, met, engine)
    )  # fmt: skip


def prompt_bytes(model: ModelProfile, kv_cache: str, tokens: float) -> float:
    """What a prompt leaves in the cache, counted once over the whole model [bytes]: the tokens that
    each layer keeps, and recurrent state."""
    size, found = KV_BYTES[kv_cache], model.state_bytes_per_sequence
    for layer, count in model.architecture.layer_counts.items():
        for cache in layer.mixer.caches(1) if layer.mixer else ():
            each = cache.elements * size + cache.fixed_bytes
            found += count * each * min(tokens, cache.kept)
    return found


def _senders(model: ModelProfile, layout: Layout) -> int:
    """Ranks of a replica that hold different parts of a sequence's KV: copies are not sent."""
    split = layout.split
    whole, part = (
        model.kv_bytes_per_token(split.kv_cache, ranks) for ranks in (1, split.attention_ranks)
    )
    parts = round(whole / part) if part else 1
    return max(parts, 1) * split.pipeline_parallel
