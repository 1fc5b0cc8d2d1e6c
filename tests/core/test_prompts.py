"""The chain of waiting prompts: against closed forms of queues, and step by step."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.core import prompts
from advisor.core.latency import LEVELS, skewed_quantiles
from advisor.core.prompts import Kind, Prompts, solve
from advisor.core.renewal import chances, met
from tests.core.profiles import planned, workload


def chain(
    step, rate, room, states=64, chunks=1.0, arrivals_cv2=1.0, length_cv2=0.0, load=0.5, answers=()
):
    """The chain of one row; no replica is ever without a sequence that decodes."""
    numbers = np.minimum(np.arange(states), room)
    columns = rate, arrivals_cv2, chunks, step(room), load, 0.0
    arrivals, cv2, steps, full, share, idle = (np.array([float(x)]) for x in columns)
    one = np.array([1])
    kinds = (Kind(1.0, answers),)
    asked = Prompts(
        arrivals, cv2, steps, room * one, one, full, share, idle, length_cv2, kinds=kinds
    )
    return solve(np.array([[step(k) for k in numbers]]), asked, states * one)


@pytest.mark.parametrize("load", [0.05, 0.3, 0.6, 0.85])
def test_one_prompt_a_step_waits_as_in_a_queue_with_vacations(load):
    """M/G/1 with vacations: decode steps are what the server does when nobody waits. The mean wait
    is lambda E[S^2] / (2 (1 - rho)) + E[V^2] / (2 E[V]) (Fuhrmann and Cooper 1985)."""
    plain, mixed = 0.02, 0.15
    rate = load / mixed
    found = chain(lambda k: mixed if k else plain, rate, 1)
    mean = found.wait
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
    mean = found.wait
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
    mean, variance = found.wait, found.wait_variance
    assert mean[0] == pytest.approx(waits.mean(), rel=0.03)
    assert variance[0] ** 0.5 == pytest.approx(waits.std(), rel=0.15)
    assert found.gap[0] == pytest.approx(durations.mean(), rel=0.02)
    assert found.decode(float(gaps))[0] == pytest.approx(decodes.mean(), rel=0.04)
    least = mean - found.own()
    quantiles = found.own() + skewed_quantiles(least, variance)[0]
    for level in (0.5, 0.95):
        at = quantiles[np.searchsorted(LEVELS, level)]
        assert at == pytest.approx(np.quantile(waits, level), rel=0.12)


@pytest.mark.parametrize(("rate", "room", "plain", "each"), [case[:4] for case in CASES])
@pytest.mark.parametrize("gaps", [1, 4, 40])
def test_short_answers_see_more_steps_with_prompts_as_stepped_through(
    rate, room, plain, each, gaps
):
    found = chain(lambda k: plain + k * each, rate, room, answers=((1.0, float(gaps)),))
    queue, started, steps = 0, [], []
    random = np.random.default_rng(5)
    for number in range(120_000):
        served = min(queue, room)
        steps.append(served)
        started += [number] * served
        queue += random.poisson(rate * (plain + served * each)) - served
    mixed = np.concatenate([[0], np.cumsum(np.array(steps) > 0)])
    began = np.array([number + 1 for number in started if number + 1 + gaps <= len(steps)])
    share = (mixed[began + gaps] - mixed[began]).mean() / gaps
    assert 1 - found.seen[0, 0] == pytest.approx(share, rel=0.04)
    assert found.seen[0].sum() == pytest.approx(1)


@pytest.mark.parametrize("room", [1.3, 1.9, 2.5])
def test_what_is_begun_of_a_prompt_is_finished_in_the_next_step(room):
    """Prompts of a tenth of a second each, cut where a step is full: stepped through in parts."""
    rate, plain, each = 6.0, 0.01, 0.1
    found = chain(lambda k: plain + k * each, rate, room)
    work, steps, waits, now = 0.0, [], [], 0.0
    queue: list[tuple[float, float]] = []
    random = np.random.default_rng(7)
    for _ in range(150_000):
        taken = min(work, room)
        length = plain + taken * each
        came = random.poisson(rate * length)
        arrived = now + np.sort(random.random(came)) * length
        now += length
        done = taken
        while queue and done >= queue[0][1] - 1e-9:
            at, left = queue.pop(0)
            waits.append(now - at)
            done -= left
        if queue:
            queue[0] = (queue[0][0], queue[0][1] - done)
        queue += [(at, 1.0) for at in arrived]
        work += came - taken
        steps.append(length)
    assert found.gap[0] == pytest.approx(np.mean(steps), rel=0.03)
    assert found.wait[0] == pytest.approx(np.mean(waits), rel=0.08)
    plains = np.mean(np.array(steps) < plain + 1e-6)
    assert found.share[0, 0] == pytest.approx(plains, rel=0.08)


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


@pytest.mark.parametrize("spread", [None, 1.0, 1.7, 6.0])
@pytest.mark.parametrize("expected", [0.01, 0.7, 5.0])
def test_the_numbers_that_arrive_are_those_of_mixed_poisson_sampling(expected, spread):
    """A negative binomial number is a Poisson one whose mean is drawn from a gamma distribution."""
    random, over = np.random.default_rng(2), (spread or 1.0) - 1
    means = random.gamma(expected / over, over, 400_000) if over else np.full(400_000, expected)
    sampled = np.bincount(random.poisson(means), minlength=40)[:40] / 400_000
    mean, came = np.full((1, 1, 1), expected), np.arange(-3, 40)[None, None, None]
    varied = None if spread is None else np.full_like(mean, spread)
    found = chances(mean, varied, np.array([1]), came)[0, 0, 0]
    assert (found[:3] == 0).all()
    assert found[3:] == pytest.approx(sampled, abs=4e-3)


LOADS = [
    workload(1000, 250, request_rate_per_s=18.0), workload(60, 40, request_rate_per_s=270.0),
    workload(6000, 100, request_rate_per_s=4.4, arrival_cv=0.5),
    workload(1000, 250, request_rate_per_s=16.0, arrival_cv=2.0),
    workload(4000, 200, request_rate_per_s=2.5, arrival_cv=3.0),
]  # fmt: skip


def latencies(counts, load):
    """Every latency of an 8B model on one to so many H100, (counts, metrics and levels)."""
    limits = {"tensor_parallel": (1,), "replicas": tuple(counts)}
    latency = planned(load=load, limits=limits, slo={}).candidates.served.latency
    return np.concatenate([np.c_[each.mean, each.quantiles] for each in latency.values()], axis=1)


@pytest.mark.parametrize("load", LOADS)
def test_a_plan_does_not_depend_on_those_evaluated_with_it(load):
    together = latencies(range(1, 9), load)
    for i in range(8):
        assert latencies([i + 1], load)[0] == pytest.approx(together[i], rel=1e-4, nan_ok=True)


@pytest.mark.parametrize("load", LOADS)
def test_more_states_would_not_change_the_latencies(monkeypatch, load):
    found = latencies(range(1, 5), load)
    monkeypatch.setattr(prompts, "_STATES", (256,))
    assert found == pytest.approx(latencies(range(1, 5), load), rel=3e-3, nan_ok=True)


def test_prompts_of_several_steps_hold_others_up_for_all_of_them():
    plain, mixed, chunks = 0.02, 0.1, 3.0
    rate = 0.5 / (mixed * chunks)
    found = chain(lambda k: mixed if k else plain, rate, 1, chunks=chunks)
    service = mixed * chunks
    expected = rate * service**2 / (2 * (1 - 0.5)) + plain / 2 + service
    assert found.wait[0] == pytest.approx(expected, rel=2e-3)


def test_regular_arrivals_wait_less_and_bursts_longer():
    waits = [
        chain(lambda k: 0.01 + 0.05 * k, 8.0, 1, arrivals_cv2=cv2).wait[0]
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
