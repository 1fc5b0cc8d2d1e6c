"""Replicas behind a router: one stream of requests, each sent to one of them.

`random` sends a request to any replica with equal chance, knowing nothing of them, as a service of
Kubernetes does by default (kube-proxy in iptables mode). `least_loaded` sends it to one of those
with the fewest requests sent and not answered: join the shortest queue.
"""

from __future__ import annotations

import math

import numpy as np

from advisor.core.replica import ReplicaModel
from advisor.core.requests import Requests, Run
from advisor.core.simulator import Simulation, refuse_too_long, sequences, simulate


def simulate_replicas(
    replica: ReplicaModel, requests: Requests, count: int, routing: str, rng: np.random.Generator
) -> list[Run]:
    """The runs of `count` alike replicas (of those that were sent anything) that serve requests
    with times, none of them sent anew. InvalidInput as `simulate`."""
    assert requests.sent_s is not None
    if routing == "random":
        to = rng.integers(count, size=len(requests))
        parts = [np.flatnonzero(to == i) for i in range(count)]
        return [simulate(replica, requests.take(part)) for part in parts if len(part)]
    return _to_the_least_loaded(replica, requests, count, rng)


def _to_the_least_loaded(
    replica: ReplicaModel, requests: Requests, count: int, rng: np.random.Generator
) -> list[Run]:
    """All replicas on one clock. A replica is only looked after when it may have answered something
    since it was last: so that the work is that of each of them alone."""
    refuse_too_long(replica, requests)
    assert requests.sent_s is not None
    replicas = [Simulation(replica, []) for _ in range(count)]
    quiet = [math.inf] * count
    sent: list[list[int]] = [[] for _ in range(count)]
    ties = rng.random(len(requests)).tolist()
    coming = zip(requests.sent_s.tolist(), sequences(requests), ties, strict=True)
    for number, (at, one, tie) in enumerate(coming):
        for i in range(count):
            if quiet[i] < at:
                replicas[i].advance(at)
                quiet[i] = replicas[i].quiet_until()
        in_flight = [each.in_flight(at) for each in replicas]
        least = min(in_flight)
        idlest = [i for i in range(count) if in_flight[i] == least]
        chosen = idlest[int(tie * len(idlest))]
        replicas[chosen].advance(at)
        replicas[chosen].sequences.append(one)
        replicas[chosen].send(at)
        quiet[chosen] = replicas[chosen].now
        sent[chosen].append(number)
    for each in replicas:
        each.advance(math.inf)
    return [
        each.run(requests.take(np.array(mine)))
        for each, mine in zip(replicas, sent, strict=True)
        if mine
    ]
