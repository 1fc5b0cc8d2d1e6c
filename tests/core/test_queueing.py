"""The chain of requests in service and its waits: closed forms, and sampled ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.queueing import (
    Wait,
    prefill_wait,
    slot_wait,
    stationary,
)
from advisor.core.workload import Length
from tests.core.profiles import workload
from tests.core.strategies import examples, spread

LEVELS = np.array([0.5, 0.9, 0.95, 0.99, 0.999])


def chain_of(rates, slots, arrivals, peakedness=1.0):
    return stationary(*map(np.array, ([rates], [slots], [arrivals], [peakedness])))


def one(wait):
    return Wait(np.array([wait[0]]), np.array([wait[1]]))


def erlang_c(servers, load):
    """P(wait) of M/M/c by its textbook sum; load = arrivals / service rate."""
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


def test_eight_servers_at_ninety_per_cent_wait_as_erlang_says():
    chain = chain_of(np.arange(1.0, 9.0), 8, 7.2)
    wait = slot_wait(chain, np.array([8.0]), np.array([7.2]), np.ones(1))
    assert chain.wait_probability[0] == pytest.approx(0.7015330, abs=5e-8)
    assert wait.mean[0] == pytest.approx(0.8769162, abs=5e-8)
    p95 = wait.quantiles(np.array([0.95]))
    assert p95[0, 0] == pytest.approx(3.3015561, abs=5e-7)


def test_a_batch_whose_service_slows_with_its_size_waits_as_worked_out_by_hand():
    """S(n) = 5 + 0.1 n seconds, 32 slots: mu(32) = 32 / 8.2."""
    n = np.arange(1.0, 33.0)
    rates = n / (5 + 0.1 * n)
    assert rates[-1] == pytest.approx(3.902439, abs=5e-7)
    arrivals = 0.95 * rates[-1]
    chain = chain_of(rates, 32, arrivals)
    wait = slot_wait(chain, rates[-1:], np.array([arrivals]), np.ones(1))
    assert chain.wait_probability[0] == pytest.approx(0.6375, abs=5e-5)
    assert wait.mean[0] == pytest.approx(3.2673, abs=5e-5)
    p95 = wait.quantiles(np.array([0.95]))
    assert p95[0, 0] == pytest.approx(13.046, abs=5e-4)


@examples(60)
@given(st.integers(1, 60), st.floats(0.01, 0.99))
def test_any_number_of_servers_waits_as_erlang_says(servers, utilization):
    chain = chain_of(np.arange(1.0, servers + 1), servers, servers * utilization)
    expected = erlang_c(servers, servers * utilization)
    assert chain.wait_probability[0] == pytest.approx(expected, rel=1e-9)
    queued = expected * utilization / (1 - utilization)
    assert chain.queued[0] == pytest.approx(queued, rel=1e-9)
    assert chain.mean[0] == pytest.approx(queued + servers * utilization, rel=1e-9)


@examples(80)
@given(st.integers(1, 2000), spread(0.001, 1000), st.floats(0.0, 0.2), st.floats(1e-4, 0.9999))
def test_the_chain_is_a_distribution_that_obeys_little(slots, first, slowing, utilization):
    n = np.arange(1.0, slots + 1)
    rates = first * n / (1 + slowing * n)
    arrivals = utilization * rates[-1]
    chain = chain_of(rates, slots, arrivals)
    assert chain.found.sum() == pytest.approx(1, abs=1e-9)
    assert (chain.found >= 0).all()
    assert 0 <= chain.wait_probability[0] <= 1
    wait = slot_wait(chain, rates[-1:], np.array([arrivals]), np.ones(1))
    assert arrivals * wait.mean[0] == pytest.approx(chain.queued[0], rel=1e-9, abs=1e-300)


def test_slots_that_no_one_reaches_change_nothing():
    rates = np.arange(1.0, 501.0)
    narrow, wide = (chain_of(rates, slots, 5.0) for slots in (100, 500))
    np.testing.assert_allclose(narrow.found, wide.found, atol=1e-15)
    assert narrow.mean[0] == pytest.approx(wide.mean[0], rel=1e-12)


def test_rows_of_different_slots_do_not_touch_each_other():
    rates = np.tile(np.arange(1.0, 65.0), (3, 1))
    slots, arrivals = np.array([1, 8, 64]), np.array([0.9, 7.2, 57.0])
    together = stationary(rates, slots, arrivals, np.ones(3))
    for i in range(3):
        alone = chain_of(rates[i, : slots[i]], slots[i], arrivals[i])
        assert together.wait_probability[i] == pytest.approx(alone.wait_probability[0], rel=1e-12)
        assert together.mean[i] == pytest.approx(alone.mean[0], rel=1e-12)
        assert together.found[i, slots[i] :].sum() == 0


def test_rising_load_in_logarithms_neither_overflows_nor_vanishes():
    n = np.arange(1.0, 4097.0)
    for utilization in (1e-9, 0.5, 0.999999):
        chain = chain_of(1e6 * n, 4096, utilization * 1e6 * 4096)
        assert np.isfinite(chain.found).all()
        assert chain.found.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("wait", [(0.6, 2.0), (1.0, 0.1), (0.03, 5.0), (0.0, np.inf), (0.0, 1.0)])
def test_quantiles_of_a_wait_agree_with_sampling(wait):
    random = np.random.default_rng(7)
    probability, decay = wait
    waits = np.where(
        random.random(400_000) < probability, random.exponential(1 / decay, 400_000), 0
    )
    for level, quantile in zip(LEVELS, one(wait).quantiles(LEVELS)[0], strict=True):
        assert (waits <= quantile).mean() == pytest.approx(
            max(level, (waits == 0).mean()), abs=4e-3
        )


@pytest.mark.parametrize("decode_share", [0.0, 0.3, 0.9, 1.0])
def test_the_work_of_requests_varies_as_sampled(decode_share):
    random = np.random.default_rng(3)
    load = workload(Length(500, 1200), Length(200, 700))
    prompt, answered = (
        random.lognormal(-(one.sigma**2) / 2, one.sigma, 1_000_000)
        for length in (load.input_tokens, load.output_tokens)
        for one in length.components
    )
    work = decode_share * answered + (1 - decode_share) * prompt
    found = load.work_cv2(np.array([decode_share]))[0]
    assert found == pytest.approx(work.var() / work.mean() ** 2, rel=0.03)


@examples(60)
@given(spread(1e-4, 10), st.floats(0, 3), st.floats(0.001, 0.99), spread(1e-3, 50))
def test_a_prompt_waits_as_in_a_queue_of_one_server(prompt, squared_cv, load, variability):
    """Pollaczek and Khinchine's lambda E[P^2] / (2 (1 - lambda E[P])), its queue scaled."""

    def mean(share, uneven):
        rest = prompt * (1 + squared_cv) / 2
        busy, behind = np.array([share]), np.array([rest])
        wait = prefill_wait(busy, behind, busy, uneven)
        assert 0 <= wait.probability[0] < 1
        return wait.mean[0]

    khinchine = load * prompt * (1 + squared_cv) / (2 * (1 - load))
    assert mean(load, 1.0) == pytest.approx(khinchine, rel=1e-9)
    at_once = load * prompt * (1 + squared_cv) / 2
    queued = khinchine - at_once
    assert mean(load, variability) == pytest.approx(at_once + variability * queued, rel=1e-9)
    assert mean(load, 1.0) <= mean(min(load * 1.1, 0.999), 1.0)


@examples(60)
@given(st.integers(1, 300), st.floats(0.01, 0.99), st.floats(0.5, 20))
def test_arrivals_that_bunch_find_more_slots_taken(slots, utilization, peakedness):
    rates = np.arange(1.0, slots + 1)
    poisson, bunched = (chain_of(rates, slots, slots * utilization, z) for z in (1.0, peakedness))
    assert bunched.found.sum() == pytest.approx(1, abs=1e-9)
    more = peakedness >= 1
    assert (bunched.wait_probability[0] >= poisson.wait_probability[0] - 1e-9) == more or (
        bunched.wait_probability[0] == pytest.approx(poisson.wait_probability[0], abs=1e-9)
    )
