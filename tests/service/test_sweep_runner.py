from __future__ import annotations

import threading

import pytest

from advisor.service import sweep_runner
from advisor.service.sweep_runner import SweepRunner
from advisor.store.errors import DatabaseUnavailable


class Answering:
    """In place of a worker: fails as it is told, and notes what it was asked to answer."""

    def __init__(self, *failures: Exception) -> None:
        self.failures, self.answered = list(failures), list[str]()
        self.done = threading.Event()

    def advance(self, sweep_id: str) -> bool:
        if self.failures:
            raise self.failures.pop(0)
        self.answered.append(sweep_id)
        self.done.set()
        return False


@pytest.mark.parametrize("failure", [ZeroDivisionError(), DatabaseUnavailable()])
def test_a_sweep_that_fails_and_a_database_that_is_away_end_nothing(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweep_runner, "LOOK_S", 0.01)
    monkeypatch.setattr(sweep_runner, "open_sweeps", lambda _: ["bad", "good"])
    runner = SweepRunner(None, None)  # type: ignore[arg-type]
    worker = runner._worker = Answering(failure)  # type: ignore[assignment]
    runner.tell()
    assert worker.done.wait(20)
    runner.end()
    assert worker.answered[0] == ("good" if isinstance(failure, ZeroDivisionError) else "bad")
