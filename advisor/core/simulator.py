"""One replica under continuous batching, iteration by iteration.

A step decodes every running sequence and spends what is left of its token budget on prompts in
order of arrival, the last one cut to fit (chunked prefill), as vLLM's scheduler does. A request is
admitted when a sequence is free and its whole prompt fits the KV cache; outputs grow into what is
left, and where nothing is, the request admitted last is evicted and later computed anew.

Between admissions, completions and arrivals the sequences of a step are the same and their contexts
grow by a token a step. Step time is piecewise linear in context, so that such steps are taken at
once, as arithmetic series.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from advisor.core.errors import FieldError, InvalidInput
from advisor.core.replica import ReplicaModel
from advisor.core.requests import Iterations, Requests, Run

_LINEAR = 1e-9
"""Step times between two steps count as linear where the middle one is off by no larger share."""


def simulate(replica: ReplicaModel, requests: Requests) -> Run:
    """Serve all requests, to the last token of the last.

    InvalidInput where a request is longer than the KV cache, so that it could never be served.
    """
    refuse_too_long(replica, requests)
    simulation = Simulation(replica, sequences(requests))
    times = [0.0] * len(requests) if requests.sent_s is None else requests.sent_s.tolist()
    for at in times[: requests.concurrency]:
        simulation.send(at)
    simulation.advance(math.inf)
    return simulation.run(requests)


def refuse_too_long(replica: ReplicaModel, requests: Requests) -> None:
    """InvalidInput where a request is longer than the KV cache."""
    longest = int((requests.input_tokens + requests.output_tokens).max())
    if replica.held_bytes(1, longest - 1, 0) > replica.kv_bytes:  # the last token is not kept
        detail = f"A request of {longest} tokens does not fit the KV cache of a replica."
        raise InvalidInput(FieldError("/input_tokens", detail))


@dataclass(eq=False)
class Sequence:
    """A request: when it was sent, had its first and latest token and was done [s]; `shared` of its
    inputs is the common prefix. `generated` tokens stood when its prompt began (some after an
    eviction), `computed` of the prompt is in the cache, `order` says when it was admitted, its last
    step is number `finish`."""

    inputs: int
    shared: int
    outputs: int
    computed: int
    generated: int = 0
    order: int = 0
    finish: int = 0
    sent: float = 0.0
    first: float = 0.0
    latest: float = 0.0
    done: float = 0.0

    @property
    def prompt(self) -> int:
        """Tokens to compute before the next one comes."""
        return self.inputs + self.generated


def sequences(requests: Requests) -> list[Sequence]:
    """The requests, none of them sent."""
    lengths = (requests.input_tokens, requests.new_input_tokens, requests.output_tokens)
    return [
        Sequence(inputs, inputs - new, outputs, computed=inputs - new)
        for inputs, new, outputs in zip(*(each.tolist() for each in lengths), strict=True)
    ]


class Simulation:
    """The replica's state. `steps` counts decode steps; `context` is the tokens that decoding
    sequences hold in the next step, `reserved` those of prompts in work, `shared` their prefixes'.

    `coming` is a heap of arrivals at the scheduler, `decoding` one of sequences by their last step,
    some of them `evicted` since. `in_service` are those admitted and not done, in that order.
    """

    def __init__(self, replica: ReplicaModel, sequences: list[Sequence]) -> None:
        self.replica, self.sequences = replica, sequences
        self.now = 0.0
        self.steps = self.context = self.reserved = self.shared = 0
        self.evictions = self.sent = self.admitted = self.answered = self.just_answered = 0
        self.coming: list[tuple[float, int]] = []
        self.waiting: deque[Sequence] = deque()
        self.prompts: list[Sequence] = []
        self.decoding: list[tuple[int, int, Sequence]] = []
        self.in_service: dict[int, Sequence] = {}
        self.evicted: set[int] = set()
        self.interrupted: list[float] = []
        self.rows: list[tuple[float, ...]] = []

    def run(self, requests: Requests) -> Run:
        """What came of the requests that were sent."""
        moments = [(each.sent, each.first, each.done) for each in self.sequences]
        sent, first, done = np.array(moments).T
        iterations = Iterations(*np.array(self.rows).T)
        interrupted = np.array(self.interrupted)
        return Run(requests, sent, first, done, iterations, interrupted, self.evictions)

    def send(self, at: float) -> None:
        """Send the next of the sequences."""
        self.sequences[self.sent].sent = at
        heapq.heappush(self.coming, (at + self.replica.front_end_s, self.sent))
        self.sent += 1

    def advance(self, until: float) -> None:
        """Take every step that begins before `until` [s]; all is sent that is before that."""
        while self._next_step() < until:
            self._iterate(until)

    def _next_step(self) -> float:
        """When the next step begins [s]; inf when there is nothing to do."""
        if self.waiting or self.prompts or self.decoding:
            return self.now
        return max(self.now, self.coming[0][0]) if self.coming else math.inf

    def in_flight(self, at: float) -> int:
        """Requests sent and not answered at a moment [s] up to which it has advanced, and no
        further than the end of a step."""
        return self.sent - self.answered + (self.just_answered if self.now > at else 0)

    def quiet_until(self) -> float:
        """A moment before which no request is answered, whatever comes [s]: decode steps become no
        shorter as contexts grow, or with a prompt beside them. `now` where nothing is known."""
        if self.prompts or self.coming or self._admissible():
            return self.now
        if not self.decoding:
            return math.inf
        running, steps = self._decoding, self.decoding[0][0] - self.steps
        return self.now + steps * self.replica.step(running, self.context / running, 0, 0, 0, 0)

    def _iterate(self, until: float) -> None:
        """Take one step, or as many plain decode steps as pass before anything changes, or begin
        before `until`."""
        self.now = self._next_step()
        while self.coming and self.coming[0][0] <= self.now:
            self.waiting.append(self.sequences[heapq.heappop(self.coming)[1]])
        evicted = self._make_room()
        chunks = self._chunks(admit=not evicted)
        if chunks:
            self._mixed_step(chunks)
        else:
            self._decode_steps(until)

    @property
    def _running(self) -> int:
        return self._decoding + len(self.prompts)

    @property
    def _decoding(self) -> int:
        return len(self.decoding) - len(self.evicted)

    def _held(self, more_tokens: int = 0, joining: Sequence | None = None) -> float:
        """KV cache taken in the next step [bytes], were there more tokens or one more request."""
        sequences, tokens = self._running, self.context + self.reserved + more_tokens
        if joining is None:
            return self.replica.held_bytes(sequences, tokens, self.shared)
        shared = self.shared + joining.shared
        return self.replica.held_bytes(sequences + 1, tokens + joining.prompt, shared)

    def _make_room(self) -> bool:
        """Evict the requests admitted last until the next step fits; whether any was."""
        evicted = False
        while self._held() > self.replica.kv_bytes:
            self._evict()
            evicted = True
        return evicted

    def _evict(self) -> None:
        order, one = self.in_service.popitem()
        if one in self.prompts:
            self.prompts.remove(one)
            self.reserved -= one.prompt
        else:
            self.evicted.add(order)
            self._drop_evicted()
            one.generated = one.outputs - (one.finish - self.steps)
            one.latest = self.now
            self.context -= one.prompt
        one.computed = one.shared
        self.shared -= one.shared
        self.evictions += 1
        self.waiting.appendleft(one)

    def _drop_evicted(self) -> None:
        """Take evicted sequences off the top of the heap; those below wait until they come up."""
        while self.decoding and self.decoding[0][1] in self.evicted:
            self.evicted.remove(heapq.heappop(self.decoding)[1])

    def _chunks(self, admit: bool) -> list[tuple[Sequence, int]]:
        """Deal the budget out to prompts in work, and to requests that are admitted for it."""
        budget = self.replica.max_num_batched_tokens - self._decoding
        of_lane = max(budget // self.replica.lanes, 1)
        chunks: list[tuple[Sequence, int]] = []
        in_work = iter(list(self.prompts))
        while budget > 0:
            one = next(in_work, None) or (self._admit() if admit and self._admissible() else None)
            if one is None:
                break
            share = min(budget, of_lane, one.prompt - one.computed)
            chunks.append((one, share))
            budget -= share
        return chunks

    def _admit(self) -> Sequence:
        one = self.waiting.popleft()
        self.prompts.append(one)
        self.reserved += one.prompt
        self.shared += one.shared
        self.admitted += 1
        one.order = self.admitted
        self.in_service[one.order] = one
        return one

    def _admissible(self) -> bool:
        free = self.waiting and self._running < self.replica.max_num_seqs
        return bool(free) and self._held(joining=self.waiting[0]) <= self.replica.kv_bytes

    def _mixed_step(self, chunks: list[tuple[Sequence, int]]) -> None:
        """Decode, and compute chunks of prompts; those completed have their next token. The LM head
        runs on a token of every chunk (vLLM 0.33, gpu_model_runner.py: partial requests are sampled
        from too, for simplicity)."""
        tokens = cached = 0
        pairs = 0.0
        for one, share in chunks:
            pairs += share * (one.computed + (share + 1) / 2)
            cached += one.computed
            one.computed += share
            tokens += share
        running = self._decoding
        mean = self.context / running if running else 0.0
        seconds = self.replica.step(running, mean, tokens, pairs, cached, len(chunks))
        self._advance(1, seconds, seconds, tokens)
        self._finish()
        for one, _ in chunks:
            if one.computed == one.prompt:
                self._begin(one)

    def _begin(self, one: Sequence) -> None:
        """A prompt is computed: its next token comes, and the sequence decodes."""
        if one.generated:
            self.interrupted.append(self.now - one.latest)
        else:
            one.first = self.now
        self.prompts.remove(one)
        self.reserved -= one.prompt
        self.context += one.prompt + 1
        one.finish = self.steps + one.outputs - one.generated - 1
        heapq.heappush(self.decoding, (one.finish, one.order, one))
        self._finish()

    def _decode_steps(self, until: float) -> None:
        """Plain decode steps, until a sequence is done, the cache is full, or a request comes that
        may be admitted; those that begin before `until`."""
        running, mean = self._decoding, self.context / self._decoding
        step = self.replica.step
        if self.coming and not self.waiting and self._running < self.replica.max_num_seqs:
            until = min(until, self.coming[0][0])

        def seconds(index: int) -> float:
            return step(running, mean + index, 0, 0, 0, 0)

        steps = self._steps_that_fit(self.decoding[0][0] - self.steps)
        if until < math.inf:
            steps = min(steps, max(math.ceil((until - self.now) / seconds(0)), 1))
        for count, first, last in linear_pieces(seconds, steps):
            taken = steps_until(until - self.now, count, first, last)
            apart = (last - first) / max(count - 1, 1)
            self._advance(taken, first, first + apart * (taken - 1))
            if self.now >= until:
                break
        self._finish()

    def _steps_that_fit(self, most: int) -> int:
        """How many decode steps, up to `most`, the KV cache has room for; the first has."""
        running, room = self._decoding, self.replica.kv_bytes
        if self._held(running * (most - 1)) <= room:
            return most
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            fits = self._held(running * (middle - 1)) <= room
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _advance(self, count: int, first: float, last: float, prefill: int = 0) -> None:
        running = self._decoding
        mean = self.context / running if running else 0.0
        held = self._held(running * (count - 1))
        beside = len(self.prompts)
        self.rows.append((count, self.now, first, last, running, mean, beside, prefill, held))
        self.now += count * (first + last) / 2
        self.just_answered = 0
        self.steps += count
        self.context += running * count

    def _finish(self) -> None:
        """Answer the sequences whose last step this was; each client sends its next request."""
        while self.decoding and self.decoding[0][0] == self.steps:
            one = heapq.heappop(self.decoding)[2]
            self._drop_evicted()
            del self.in_service[one.order]
            self.context -= one.inputs + one.outputs
            self.shared -= one.shared
            one.done = self.now
            self.answered += 1
            self.just_answered += 1
            if self.sent < len(self.sequences):
                self.send(self.now)


def linear_pieces(
    seconds: Callable[[int], float], steps: int
) -> Iterator[tuple[int, float, float]]:
    """Steps 0 ... `steps` - 1 in pieces in which their times lie on a line: how many, and the times
    of the first and the last [s]."""
    pending = [(0, seconds(0), steps - 1, seconds(steps - 1))]
    while pending:
        low, first, high, last = pending.pop()
        if high - low > 1:
            middle = (low + high) // 2
            value = seconds(middle)
            line = first + (last - first) * (middle - low) / (high - low)
            if abs(value - line) > _LINEAR * value:
                pending.append((middle + 1, seconds(middle + 1), high, last))
                pending.append((low, first, middle, value))
                continue
        yield high - low + 1, first, last


def steps_until(seconds: float, count: int, first: float, last: float) -> int:
    """The fewest steps of a piece that take at least `seconds`, or all of them: n steps take
    n * first + n (n - 1) / 2 * slope."""
    if count * (first + last) / 2 <= seconds:
        return count
    half = (last - first) / max(count - 1, 1) / 2
    linear = first - half
    steps = 2 * seconds / (linear + math.sqrt(linear**2 + 4 * half * seconds))
    return min(max(math.ceil(steps), 1), count)
