"""Replicas that share one stream of requests by load, as one queue.

A router that sends each request to the least loaded replica keeps them level: N requests in R
replicas are N / R in each, rounded down or up. As R grows this is exact (Mukherjee, Borst, van
Leeuwaarden, Whiting, Asymptotic Optimality of Power-of-d Load Balancing in Large-Scale Systems);
for few replicas the sequences in service differ by one or two more, which the tests measure. Rows
are plans.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.core.batching import ServiceTable
from advisor.core.prompts import MOST_BUSY
from advisor.core.queueing import Stationary, Wait

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_STATES = 256
"""Numbers of requests in all replicas are told apart up to so many; of more, groups are."""

_MOST_APART = 128
"""Of more replicas as large a share is empty."""

_LEVELS = 5.0
"""A replica has half of its even share's regularity over a fifth of the time of a request; as
simulated."""


def pooled(
    rate: Array, slots: Index, arrivals: Array, replicas: Index, peakedness: Array | float = 1.0
) -> Stationary:
    """The chain of `queueing.stationary` for all of a plan's `replicas` together, (rows,), told for
    one of them. `rate`, `slots` and `arrivals` are one replica's, `peakedness` that of the whole
    stream. Departures with N requests are those of replicas that hold N / R, interpolated.

    Of more states than are kept, each stands for `group` of them: a step of the chain is then that
    many at the rates of the middle one.
    """
    states = max(_STATES, rate.shape[1])
    whole = (slots * replicas).astype(np.float64)
    group = np.maximum(whole / states, 1.0)[:, None]
    number = np.arange(states + 1) * group
    inside = number < whole[:, None] - 1e-9
    each = np.concatenate([np.zeros((len(rate), 1)), rate], axis=1)

    def departures(requests: Array) -> Array:
        low, part = _within(requests, slots, replicas)
        below, above = (np.take_along_axis(each, at, axis=1) for at in (low, low + 1))
        return np.asarray(replicas[:, None] * (below + part * (above - below)))

    z = np.broadcast_to(peakedness, arrivals.shape)[:, None]
    base, pull = (arrivals * replicas)[:, None] / z, 1 - 1 / z

    def births(requests: Array) -> Array:
        return np.asarray(np.maximum(base + pull * departures(requests), 1e-12 * base))

    middle = number[:, :-1] + (group - 1) / 2
    rise = group * (np.log(births(middle)) - np.log(departures(middle + 1)))
    log_p = np.concatenate([np.zeros((len(rate), 1)), np.cumsum(rise, axis=1)], axis=1)
    row, full = np.arange(len(rate)), inside.sum(axis=1)
    log_p[number > whole[:, None] + 0.5] = -np.inf
    weight = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    last, ends = weight[row, full], (group[:, 0] - 1) / 2
    first = weight[:, 0] * (ends + 1)
    weight *= group
    weight[:, 0], weight[row, full] = first, last * ends  # Euler and Maclaurin's ends of a sum
    at_full = whole[:, None]
    ratio = (births(at_full) / departures(at_full))[:, 0]
    waiting = last / (1 - ratio)
    total = weight.sum(axis=1) + waiting
    weight, waiting = weight / total[:, None], waiting / total
    seen = (weight * births(number)).sum(axis=1)
    of_waiting = waiting * births(at_full)[:, 0]
    queued = waiting * ratio / (1 - ratio) / replicas
    in_service = (weight * number).sum(axis=1) / replicas + slots * waiting
    found = _found(rate, weight, waiting, _within(number, slots, replicas), slots)
    return Stationary(found, of_waiting / (seen + of_waiting), queued, in_service + queued)


def _within(requests: Array, slots: Index, replicas: Index) -> tuple[Index, Array]:
    """Requests that each replica holds at least, and the share of replicas that hold one more."""
    held = np.minimum(requests / replicas[:, None], slots[:, None])
    low = np.minimum(np.floor(held + 1e-9), slots[:, None] - 1).astype(np.int64)
    return low, np.clip(held - low, 0.0, 1.0)


def _found(
    rate: Array, weight: Array, waiting: Array, held: tuple[Index, Array], slots: Index
) -> Array:
    """How often a request is served beside n - 1 others, n = 1 ... N: as often as requests depart
    from so many."""
    rows, columns = rate.shape
    low, part = held
    start = np.arange(rows)[:, None] * (columns + 1)
    share = np.zeros(rows * (columns + 1))
    for at, of in ((low, 1 - part), (low + 1, part)):
        share += np.bincount((start + at).ravel(), (weight * of).ravel(), minlength=len(share))
    share = share.reshape(rows, columns + 1)
    share[np.arange(rows), slots] += waiting
    found = share[:, 1:] * rate
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def pooled_wait(
    chain: Stationary, saturation: Array, arrivals: Array, replicas: Index, variability: Array
) -> Wait:
    """Wait for a place in a batch of any replica: that of one queue for all their slots and, since
    a request that waits has chosen its replica, longer by half a departure of that one, less half a
    departure of all: (R - 1) / (2 R mu(B))."""
    one_queue = variability / (replicas * (saturation - arrivals))
    chosen = (replicas - 1) / (2 * replicas * saturation)
    return Wait(chain.wait_probability, 1 / (one_queue + chosen))


def levelled_cv2(
    split_cv2: Array, table: ServiceTable, local: Index, n: Array, arrivals: Array, replicas: Index
) -> Array:
    """Squared variation of arrivals at a replica as its queue of prompts sees it, less than the
    `split_cv2` of a random part of the stream; `n` sequences decode on average.

    What comes to a replica follows what it has answered. Over times far below that of a request T
    answers come at random, and so do arrivals, as in a random split; over longer ones each replica
    has its even part of the stream, as in a round robin, with 1 - 1/R less (cv^2 / R). A queue of
    prompts looks back as many steps as it takes to empty.
    """
    row, at = np.arange(len(n)), np.clip(n, 0, table.service.shape[1] - 1).astype(np.int64)
    step, service, load = (
        curve[local][row, at] for curve in (table.mixed_step, table.service, table.prompt_load)
    )
    seen = _LEVELS * step / (1 - np.clip(arrivals * load, 0.0, MOST_BUSY))
    return np.asarray(split_cv2 - (1 - 1 / replicas) * seen / (seen + service))


def met_in_service(in_service: Array, replicas: Index) -> Array:
    """How many arrivals a request meets at its replica, as a share of those at any time, (rows,):
    none while another replica is empty. `in_service` is the mean number in a replica; a Poisson
    number N of them in R replicas keeps min(N, R) busy, and N >= R lets them meet arrivals."""
    count = np.minimum(replicas, _MOST_APART)
    mean = np.maximum(in_service * count, 1e-12)[:, None]
    number = np.arange(int(count.max(initial=1)))
    factorial = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(number[1:], 1)))])
    chance = np.exp(number * np.log(mean) - mean - factorial) * (number < count[:, None])
    met = 1 - chance.sum(axis=1)
    busy = 1 - (chance * (1 - number / count[:, None])).sum(axis=1)
    return np.asarray(np.clip(met / np.maximum(busy, 1e-300), 0.0, 1.0))
