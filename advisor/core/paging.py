"""How an engine pages the KV cache of a rank: blocks of tokens, and layers that share them.

Where all layers keep every token, a block holds a number of tokens in each layer. Layers of several
kinds (full, sliding, recurrent) share one pool of equal blocks instead (vLLM's hybrid manager):
each kind is cut into groups of as many layers, a sequence takes blocks for every group, and what
does not divide is padded. A recurrent state takes one block in each of its groups, so blocks grow
to the size of a state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from advisor.core.engines import EngineSettings
from advisor.core.layouts import StageLoad
from advisor.core.mixers import UNBOUNDED


@dataclass(frozen=True)
class PagedCache:
    """All layers of one kind: `kv_bytes` per token with their padding, in blocks of `block_tokens`,
    of the last `kept` tokens; a block of tokens takes `groups` blocks of the pool."""

    kv_bytes: float
    kept: float
    block_tokens: int
    groups: int = 1

    def admitted_blocks(self, tokens: float, batched_tokens: int) -> int:
        """Blocks reserved to admit a request: whole ones, and in a sliding layer those of
        min(window - 1 + batched tokens, length) and one more (vLLM 0.11 and later)."""
        if self.kept == UNBOUNDED:
            return self.groups * math.ceil(tokens / self.block_tokens)
        kept = min(self.kept - 1 + batched_tokens, tokens)
        return self.groups * (math.ceil(kept / self.block_tokens) + 1)

    def filled_tokens(self, tokens: float) -> float:
        """Tokens that a running sequence of `tokens` keeps: at most a window, and the block that
        the window is leaving."""
        return tokens if tokens <= self.kept else self.kept + self.block_tokens

    def unfilled_tokens(self, tokens: float) -> float:
        """Room in its last block that a sequence takes and does not use, on average over lengths
        [tokens]."""
        return (self.block_tokens - 1) / 2 if tokens <= self.kept else 0.0


@dataclass(frozen=True)
class Paging:
    """The pages of one rank: caches that grow with a sequence, and its recurrent state [bytes] in
    `state_groups` blocks. `block_bytes` is one block of the pool."""

    caches: tuple[PagedCache, ...]
    state_bytes: float
    state_groups: int
    block_bytes: float

    def admitted_bytes(self, tokens: float, batched_tokens: int) -> float:
        """Memory that an engine reserves to admit a request of `tokens` [bytes].

        vLLM asks for 4,874,895,360 bytes for gpt-oss-120b at 131,072 tokens and 1,024 batched.
        """
        return self.state_bytes + sum(
            each.kv_bytes * each.block_tokens / each.groups
            * each.admitted_blocks(tokens, batched_tokens)
            for each in self.caches
        )  # fmt: skip

    def filled_bytes(self, tokens: float) -> float:
        """Cache and state of a running sequence of `tokens`, were its blocks all full [bytes]."""
        growing = sum(each.kv_bytes * each.filled_tokens(tokens) for each in self.caches)
        return self.state_bytes + growing

    def held_bytes(self, tokens: float) -> float:
        """Memory that a running sequence of `tokens` takes, on average [bytes]."""
        unfilled = sum(each.kv_bytes * each.unfilled_tokens(tokens) for each in self.caches)
        return self.filled_bytes(tokens) + unfilled

    def shared_bytes(self, tokens: float, shared: float) -> float:
        """What of a sequence's cache is the prefix of `shared` tokens, kept once for all [bytes]:
        as far as its windows still reach back to it."""
        return sum(
            each.kv_bytes * max(0.0, min(shared, each.kept - (tokens - shared)))
            for each in self.caches
        )

    def reported_tokens(self, kv_bytes: float, settings: EngineSettings) -> int | None:
        """Tokens of KV cache that the engine prints at start-up, None where it is not known.

        "blocks": blocks over groups times the tokens of a block, which is not capacity where layers
        differ; "concurrency": requests of `max_model_len` times their length.
        """
        separate = self.mixed and not settings.shared_pool
        if settings.reports is None or not self.caches or separate:
            return None
        blocks = max(math.floor(kv_bytes / self.block_bytes), 0)
        if settings.reports == "blocks":
            groups = self.state_groups + sum(each.groups for each in self.caches)
            groups = groups if self.mixed else 1
            return blocks // groups * min(each.block_tokens for each in self.caches)
        length, batched = settings.max_model_len, settings.max_num_batched_tokens
        taken = self.admitted_bytes(length, batched) / self.block_bytes
        return math.floor(blocks / taken * length)

    @property
    def mixed(self) -> bool:
        """Whether layers of several kinds share the pool."""
        return bool(self.state_groups) or len({each.kept for each in self.caches}) > 1


def paging(stage: StageLoad, settings: EngineSettings, context_parallel: int = 1) -> Paging:
    """The pages of a stage on each rank. Over `context_parallel` ranks a sequence's tokens are
    dealt out, so that a block holds as many times the tokens."""
    return _paging(
        stage,
        settings.block_tokens * context_parallel,
        settings.frees_windows,
        settings.latent_row_bytes,
        settings.sparse_extra_bytes / context_parallel,
        settings.even_group if settings.shared_pool else None,
    )


@lru_cache(maxsize=4096)
def _paging(
    stage: StageLoad, block: int, frees_windows: bool, row_bytes: int, sparse_extra_bytes: float,
    even_group: float | None,
) -> Paging:  # fmt: skip
    """The pages of a stage; without `even_group`, kinds of layers have pools of their own."""
    kinds: dict[tuple[float, float], int] = {}
    for cache in stage.caches:
        if cache.layers:
            kept = cache.kept if frees_windows else UNBOUNDED
            size = cache.kv_bytes / cache.layers
            if cache.latent and cache.read < cache.kept:
                size += sparse_extra_bytes
            if cache.latent and row_bytes:
                size = max(size, math.ceil(size / row_bytes) * row_bytes)
            kind = (kept, size)
            kinds[kind] = kinds.get(kind, 0) + cache.layers
    alike = not stage.state_layers and len({kept for kept, _ in kinds}) <= 1
    if even_group is None or alike:
        caches = tuple(PagedCache(n * size, kept, block) for (kept, size), n in kinds.items())
        token_bytes = sum(each.kv_bytes for each in caches)
        return Paging(
            caches,
            stage.state_bytes,
            1 if stage.state_layers else 0,
            token_bytes * block or stage.state_bytes,
        )
    return _shared(kinds, stage, block, even_group)


def _shared(
    kinds: dict[tuple[float, float], int], stage: StageLoad, block: int, even_group: float
) -> Paging:
    """One pool for all kinds: groups of equally many layers, pages as large as the largest."""
    counts = [*kinds.values(), *([stage.state_layers] if stage.state_layers else [])]
    layers = min(counts)
    if max(counts) < even_group * layers:
        layers = max(counts)
    page = max((size * block for _, size in kinds), default=0.0)
    if stage.state_layers:
        state = stage.state_bytes / stage.state_layers
        page = page * math.ceil(state / page) if page else state
    block_bytes = page * layers
    caches = []
    for (kept, size), count in kinds.items():
        groups, tokens = math.ceil(count / layers), block * int(page / (size * block))
        caches.append(PagedCache(groups * block_bytes / tokens, kept, tokens, groups))
    state_groups = math.ceil(stage.state_layers / layers)
    return Paging(tuple(caches), state_groups * block_bytes, state_groups, block_bytes)
