"""The server that the configuration in `advisor/gunicorn_conf.py` makes, over real sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path

import pytest

from benchmarks.echo import ANSWER
from tests.servers import Server, running, wait_until
from tests.web import bodies

CHECK = {"text": "Decode is memory-bound."}


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[Server]:
    with running(sqlite_url, tmp_path) as started:
        yield started


def test_what_is_refused_before_it_reaches_the_application_is_a_problem_too(server: Server):
    refused = {
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n": 414,
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 9000 + b"\r\n\r\n": 431,
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-Many: 1\r\n" * 70 + b"\r\n": 431,
        b"this is not HTTP\r\n\r\n": 400,
    }
    for request, expected in refused.items():
        status, media_type, problem = server.send(request)
        assert (status, media_type) == (expected, "application/problem+json")
        assert problem["status"] == expected
        assert problem["title"]
        assert problem["detail"]


def test_clients_that_leave_their_connections_open_hold_nobody_up(server: Server):
    """The answer closes the connection; the client does not, as many do not for a while."""
    left, begun = [], time.monotonic()
    for _ in range(24):
        left.append(socket.create_connection(("127.0.0.1", server.port)))
        left[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert left[-1].recv(65536)
    # Each would hold a worker up for 2 s.
    assert time.monotonic() - begun < 12
    for each in left:
        each.close()


def test_metrics_keep_what_workers_counted_that_have_been_replaced_but_not_their_files(
    server: Server,
):
    def counted() -> float:
        line = r"^advisor_requests_total\{.*healthz.*\} (\S+)$"
        return sum(map(float, re.findall(line, server.get("/metrics"), re.MULTILINE)))

    for _ in range(30):
        server.get("/healthz")
    before = counted()
    assert before > 30
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.log.read_text().count("Worker exiting") == 2)
    assert counted() == before
    for _ in range(4):
        killed = set(server.workers())
        for worker in killed:
            os.kill(worker, signal.SIGKILL)
        wait_until(lambda: len(set(server.workers()) - killed) == 2)  # noqa: B023
        server.get("/healthz")
    assert counted() == before + 4
    # Of each kind, one for every place there ever was at once, and one of the first process.
    (directory,) = server.temporary.glob("advisor-metrics-*")
    assert len(list(directory.iterdir())) <= 2 * (4 + 1)


def test_a_key_in_what_cannot_be_parsed_is_not_logged(server: Server):
    key = "advisor_" + "k" * 43
    for line in (f"Authorization Bearer {key}", f"X-{key}\x00: 1", f" {key}"):
        request = f"GET /healthz HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n"
        assert server.send(request.encode())[0] == 400
    server.send(f"GET /{key} {key} HTTP/1.1\r\n\r\n".encode())
    log = server.log.read_text()
    assert log.count("advisor_...") >= 3
    assert key not in log


def test_metrics_add_up_what_every_worker_has_found(server: Server):
    for _ in range(20):
        server.post(
            "/v1/terminology/checks",
            {"text": "Decode is memory-bound. The kernel is memory-bound."},
        )
    line = r'^advisor_findings_total\{.*rule="ambiguous-memory-bound".*\} (\S+)$'
    for _ in range(10):
        # Whichever worker answers.
        found = re.findall(line, server.get("/metrics"), re.MULTILINE)
        assert sum(map(float, found)) == 40


def test_workers_that_are_killed_lose_and_double_nothing_that_is_sent_again(
    server: Server, sqlite_url: str
):
    end, answered = threading.Event(), Counter[str]()

    def post(client: int) -> None:
        for number in takewhile(lambda _: not end.is_set(), count()):
            create_check(server, f"{client}-{number}")
            answered[f"{client}-{number}"] += 1

    threads = [threading.Thread(target=post, args=(client,)) for client in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(6):
        before = answered.total()
        wait_until(lambda: answered.total() > before + 8)  # noqa: B023
        for worker in server.workers():
            os.kill(worker, signal.SIGKILL)
    end.set()
    for thread in threads:
        thread.join()
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        (rows,) = connection.execute("SELECT count(*) FROM terminology_checks").fetchone()
        (kept,) = connection.execute("SELECT count(*) FROM idempotency_keys").fetchone()
    assert rows == kept == len(answered) > 50


def create_check(server: Server, key: str) -> None:
    """Send a request under a key until it is answered."""
    while True:
        try:
            server.post("/v1/terminology/checks", CHECK, key, timeout=5)
            return
        except OSError:
            time.sleep(0.02)


def test_a_stopped_server_ends_cleanly_and_leaves_nothing_behind(server: Server):
    assert list(server.temporary.iterdir())
    assert server.stop() == 0
    assert list(server.temporary.iterdir()) == []
    assert list(server.home.iterdir()) == []


def test_every_request_is_answered_while_workers_are_replaced(server: Server):
    ended, failed, answered = threading.Event(), list[str](), Counter[int]()

    def post(client: int) -> None:
        while not ended.is_set():
            try:
                server.post("/v1/terminology/checks", CHECK)
                answered[client] += 1
            except OSError as error:
                failed.append(repr(error))

    threads = [threading.Thread(target=post, args=(client,)) for client in range(4)]
    for thread in threads:
        thread.start()
    for replaced in (2, 4):
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: server.log.read_text().count("Worker exiting") == replaced)  # noqa: B023
    ended.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sum(answered.values()) > 20


def test_a_server_that_is_told_to_end_answers_what_it_has_begun(server: Server):
    answers: list[dict] = []
    ask = {
        "model": bodies.MODEL,
        "hardware": [bodies.HARDWARE],
        "workload": {"request_rate_per_s": 4, "input_tokens": 1000, "output_tokens": 250},
        "verify": True,
    }
    threads = [
        threading.Thread(target=lambda: answers.append(server.post("/v1/plans", ask, timeout=60)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    begun = time.monotonic()
    assert answers == []
    assert server.stop() == 0
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert time.monotonic() - begun > 0.2


def test_the_echo_that_it_is_measured_beside_runs_under_the_same_configuration(tmp_path: Path):
    answer = tmp_path / "answer.json"
    answer.write_text('{"of": "the service"}')
    changes = {ANSWER: str(answer), "ADVISOR_WORKERS": "1"}
    with running("sqlite://", tmp_path / "echo", changes, "benchmarks.echo:app") as echo:
        assert echo.post("/v1/plans", {}) == {"of": "the service"}


def test_a_sweep_goes_on_where_a_stopped_server_has_left_it(sqlite_url: str, tmp_path: Path):
    workload = {"request_rate_per_s": {"from": 1, "to": 150, "steps": 150}}
    grid = {
        "models": [bodies.MODEL],
        "hardware": [bodies.HARDWARE, bodies.HARDWARE | {"name": "other", "memory_gib": 150}],
        "workloads": [workload | {"input_tokens": [100, 200, 300, 400, 500], "output_tokens": 200}],
        "objectives": ["cost", "latency"],
    }
    with running(sqlite_url, tmp_path / "first") as server:
        path = f"/v1/sweeps/{server.post('/v1/sweeps', {'grid': grid})['id']}"
        wait_until(lambda: json.loads(server.get(path))["done"] > 0)
        assert server.stop() == 0
    with running(sqlite_url, tmp_path / "second") as server:
        begun = json.loads(server.get(path))
        assert 0 < begun["done"] < begun["total"] == 3000
        wait_until(lambda: json.loads(server.get(path))["state"] == "done", seconds=120)
        rows = [json.loads(line) for line in server.get(f"{path}/results").splitlines()]
    assert [row["item"] for row in rows] == list(range(3000))
