"""The chain of waiting prompts: against closed forms of queues, and step by step."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.core.latency import LEVELS, skewed_quantiles
from advisor.core.prompts import Prompts, met, solve


def prompts(rate, room, chunks=1.0, arrivals_cv2=1.0, length_cv2=0.0, load=0.5):
    columns = (rate, arrivals_cv2, chunks)
    arrivals, cv2, steps = (np.array([float(x)]) for x in columns)
    return Prompts(
        arrivals, cv2, steps, np.array([room]), np.array([1]), np.array([load]), length_cv2
    )


def chain(step, rate, room, states=64, **fields):
    numbers = np.minimum(np.arange(states), room)
    return solve(np.array([[step(k) for k in numbers]]), prompts(rate, room, **fields))


BUSY = np.zeros(1)
"""No replica is ever without a sequence that decodes."""


@pytest.mark.parametrize("load", [0.05, 0.3, 0.6, 0.85])
def test_one_prompt_a_step_waits_as_in_a_queue_with_vacations(load):
    """M/G/1 with vacations: decode steps are what the server does when nobody waits. The mean wait
    is lambda E[S^2] / (2 (1 - rho)) + E[V^2] / (2 E[V]) (Fuhrmann and Cooper 1985)."""
    plain, mixed = 0.02, 0.15
    rate = load / mixed
    found = chain(lambda k: mixed if k else plain, rate, 1)
    mean, _ = found.wait(BUSY)
    expected = rate * mixed**2 / (2 * (1 - load)) + plain / 2 + mixed
    assert mean[0] == pytest.approx(expected, rel=2e-3)
    plain_steps = (1 - load) / plain / ((1 - load) / plain + rate)
    assert found.share[0, 0] == pytest.approx(plain_steps, rel=1e-3)


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_steps_with_room_for_all_are_cycles_of_gated_service(load):
    """One queue polled again and again, all served who stood there: cycles of mean V / (1 - rho)
    and variance lambda S^2 E[C] / (1 - rho^2); who arrives in one waits for its rest (E[C^2] / (2
    E[C])) and for the next, which is V + S (1 + lambda E[C^2] / E[C]) long."""
    plain, each = 0.03, 0.01
    rate = load / each
    found = chain(lambda k: plain + k * each, rate, 60)
    cycle = plain / (1 - load)
    square = cycle**2 + rate * each**2 * cycle / (1 - load**2)
    assert found.gap[0] == pytest.approx(cycle, rel=1e-3)
    assert found.gap_variance[0] == pytest.approx(square - cycle**2, rel=1e-2)
    mean, _ = found.wait(BUSY)
    behind = square / cycle
    assert mean[0] == pytest.approx(behind / 2 + plain + each * (1 + rate * behind), rel=2e-3)


CASES = [
    (8.0, 1, 0.01, 0.06, 0.0), (8.0, 1, 0.01, 0.1, 0.0), (40.0, 4, 0.012, 0.015, 0.0),
    (300.0, 30, 0.01, 0.002, 0.0),
]  # fmt: skip


def stepped(rate, room, plain, each, gaps, count=120_000, seed=3):
    """The chain sampled: waits of arrivals, and the time of so many steps after one's own."""
    random = np.random.default_rng(seed)
    durations, finished, waits = [], [], []
    queue: list[float] = []
    now = 0.0
    for number in range(count):
        served = queue[:room]
        length = plain + len(served) * each
        arrived = now + np.sort(random.random(random.poisson(rate * length))) * length
        queue = queue[room:] + arrived.tolist()
        now += length
        durations.append(length)
        waits += [now - at for at in served]
        finished += [number] * len(served)
    total = np.concatenate([[0], np.cumsum(durations)])
    began = np.array([i + 1 for i in finished if i + 1 + gaps <= count])
    return np.array(waits), total[began + gaps] - total[began], np.array(durations)


@pytest.mark.parametrize(("rate", "room", "plain", "each"), [case[:4] for case in CASES])
@pytest.mark.parametrize("gaps", [1, 5, 20, 300])
def test_waits_and_decodes_are_those_of_a_queue_stepped_through(rate, room, plain, each, gaps):
    found = chain(lambda k: plain + k * each, rate, room)
    waits, decodes, durations = stepped(rate, room, plain, each, gaps)
    mean, variance = found.wait(BUSY)
    assert mean[0] == pytest.approx(waits.mean(), rel=0.03)
    assert variance[0] ** 0.5 == pytest.approx(waits.std(), rel=0.15)
    assert found.gap[0] == pytest.approx(durations.mean(), rel=0.02)
    assert found.decode(np.array([float(gaps)]))[0] == pytest.approx(decodes.mean(), rel=0.04)
    least = mean - found.own()
    quantiles = found.own() + skewed_quantiles(least, variance)[0]
    for level in (0.5, 0.95):
        at = quantiles[np.searchsorted(LEVELS, level)]
        assert at == pytest.approx(np.quantile(waits, level), rel=0.12)


def test_steps_add_up_to_the_prompts_that_come():
    """As many are computed in the mean step as arrive in it."""
    for rate, room, plain, each, _ in CASES:
        found = chain(lambda k, p=plain, e=each: p + k * e, rate, room)
        states = np.minimum(np.arange(found.share.shape[1]), room)
        assert (found.share[0] * states).sum() == pytest.approx(rate * found.gap[0], rel=2e-3)


@pytest.mark.parametrize("cv2", [0.25, 0.5, 2.25, 4.0, 9.0])
@pytest.mark.parametrize("expected", [0.02, 0.2, 1.0, 5.0])
def test_around_an_arrival_come_as_many_as_sampled(cv2, expected):
    """The renewal function of gamma distributed times between arrivals."""
    random = np.random.default_rng(1)
    times = np.cumsum(random.gamma(1 / cv2, cv2, 400_000))
    after = np.searchsorted(times, times + expected) - np.arange(len(times)) - 1
    sampled = after[: -int(20 * max(expected, 1))].mean()
    found = met(np.array([expected]), np.array([cv2]))[0]
    assert found == pytest.approx(sampled, rel=0.25, abs=0.02)


def test_prompts_of_several_steps_hold_others_up_for_all_of_them():
    plain, mixed, chunks = 0.02, 0.1, 3.0
    rate = 0.5 / (mixed * chunks)
    found = chain(lambda k: mixed if k else plain, rate, 1, chunks=chunks)
    service = mixed * chunks
    expected = rate * service**2 / (2 * (1 - 0.5)) + plain / 2 + service
    assert found.wait(BUSY)[0][0] == pytest.approx(expected, rel=2e-3)


def test_regular_arrivals_wait_less_and_bursts_longer():
    waits = [
        chain(lambda k: 0.01 + 0.05 * k, 8.0, 1, arrivals_cv2=cv2).wait(BUSY)[0][0]
        for cv2 in (0.0, 0.25, 1.0, 2.25, 9.0)
    ]
    assert waits == sorted(waits)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 1.5, 2.0, 5.0, 50.0])
def test_skewed_times_have_about_the_quantiles_of_gamma_ones(shape):
    sampled = np.random.default_rng(5).gamma(shape, 1 / shape, 1_000_000)
    found = skewed_quantiles(np.ones(1), np.array([1 / shape]))[0]
    for level in (0.5, 0.95, 0.99):
        at = found[np.searchsorted(LEVELS, level)]
        assert at == pytest.approx(np.quantile(sampled, level), rel=0.12, abs=0.12)
