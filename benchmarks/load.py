"""Requests a second and latency under wrk, beside a bare Flask echo of the same answer.

Both run under gunicorn with two workers, in turns within one run; the echo is measured twice a
round, and how far its two figures lie apart says how noisy the machine is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.echo import ANSWER
from benchmarks.request_cost import ASK
from benchmarks.surroundings import catalogued
from tests.servers import running

ROUNDS = 12
SECONDS = 3
CLIENTS = 8
HOW_TO_INSTALL = "wrk is not installed: `apt-get install wrk`, or your system's package of it."
_POST = """wrk.method = "POST"
wrk.body = {body}
wrk.headers["Content-Type"] = "application/json"
"""


@dataclass(frozen=True)
class Rate:
    """What wrk saw: requests a second, latency at two percentiles [ms], and how many answers were
    no 2xx."""

    requests_per_s: float
    p50_ms: float
    p99_ms: float
    failed: int


@dataclass(frozen=True)
class Case:
    """A request that is sent again and again."""

    name: str
    path: str
    body: Any = None


CASES = (
    Case("POST /v1/plans, 20 candidates, stored", "/v1/plans", ASK),
    Case("POST /v1/terminology/checks, stored", "/v1/terminology/checks",
         {"text": "Decode is memory-bound."}),
    Case("GET /v1/hardware-profiles/h100-sxm-80gb", "/v1/hardware-profiles/h100-sxm-80gb"),
)  # fmt: skip


def main() -> None:
    """Print each case's medians beside the echo's. SystemExit without wrk."""
    if shutil.which("wrk") is None:
        raise SystemExit(HOW_TO_INSTALL)
    print(f"Load: {CLIENTS} clients, {ROUNDS} rounds of {SECONDS} s, two workers each, medians")
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(CASES):
            place = Path(folder) / str(number)
            place.mkdir()
            _compare(case, place)


def _compare(case: Case, folder: Path) -> None:
    script = folder / "request.lua"
    script.write_text("" if case.body is None else _POST.format(body=_quoted(case.body)))
    url = catalogued(f"sqlite:///{folder / 'advisor.sqlite3'}")
    with running(url, folder / "service", {"ADVISOR_WORKERS": "2"}) as service:
        sample = folder / "answer.json"
        sample.write_text(
            service.get(case.path)
            if case.body is None
            else json.dumps(service.post(case.path, case.body))
        )
        echo = {ANSWER: str(sample), "ADVISOR_WORKERS": "2"}
        with running(url, folder / "echo", echo, "benchmarks.echo:app") as bare:
            rounds = [
                [_wrk(each.url + case.path, script) for each in (service, bare, bare)]
                for _ in range(ROUNDS)
            ]
    ours, first, again = (list(each) for each in zip(*rounds, strict=True))
    spread = median(
        abs(a.requests_per_s / b.requests_per_s - 1) for a, b in zip(first, again, strict=True)
    )
    print(f"  {case.name}, {sample.stat().st_size / 1024:.0f} KiB")
    for name, figure in (("requests/s", "requests_per_s"), ("p50", "p50_ms"), ("p99", "p99_ms")):
        mine, echoed = (median(getattr(r, figure) for r in side) for side in (ours, first + again))
        print(f"    {name:10} {mine:8.1f}, echo {echoed:8.1f}: {mine / echoed:.2f} times")
    failed = sum(each.failed for each in ours)
    print(f"    failed {failed}; the echo differs from itself by {spread:.0%}")


def _quoted(body: Any) -> str:
    """JSON as a string of Lua."""
    return f"[==[{json.dumps(body)}]==]"


def _wrk(url: str, script: Path) -> Rate:
    done = subprocess.run(
        ["wrk", "-t1", f"-c{CLIENTS}", f"-d{SECONDS}s", "--latency", "-s", str(script), url],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", done)
    errors = re.search(
        r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", done
    )
    lost = sum(map(int, errors.groups())) if errors else 0
    return Rate(
        float(_found(r"Requests/sec:\s+(\S+)", done)),
        _ms(_found(r"^ +50% +(\S+)", done)),
        _ms(_found(r"^ +99% +(\S+)", done)),
        lost + (int(failed[1]) if failed else 0),
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    assert match is not None, text
    return match[1]


def _ms(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


if __name__ == "__main__":
    main()
