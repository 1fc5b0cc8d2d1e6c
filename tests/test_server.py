"""The server that the configuration in `advisor/gunicorn_conf.py` makes, over real sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int
    home: Path
    temporary: Path
    log: Path

    def get(self, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def send(self, request: bytes) -> tuple[int, str, dict]:
        """The status, media type and JSON that raw bytes are answered with."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        head, _, body = answer.partition(b"\r\n\r\n")
        media_type = re.search(rb"(?i)content-type: *(\S+)", head)
        assert media_type
        return int(head.split()[1]), media_type[1].decode(), json.loads(body)

    def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return bool(self.get("/healthz"))
        except OSError:
            return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def server(sqlite_url: str, tmp_path: Path) -> Iterator[Server]:
    port, home, temporary = free_port(), tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    changes = {
        "ADVISOR_DATABASE_URL": sqlite_url,
        "ADVISOR_PORT": str(port),
        "HOME": str(home),
        "TMPDIR": str(temporary),
    }
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "ADVISOR_HOST")}
    log = tmp_path / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", "python:advisor.gunicorn_conf"],
            env=kept | changes,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Server(process, port, home, temporary, log)
    try:
        wait_until(started.answers)
        yield started
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


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


def test_metrics_keep_what_workers_counted_that_have_been_replaced(server: Server):
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


def test_metrics_add_up_what_every_worker_has_found(server: Server):
    body = json.dumps({"text": "Decode is memory-bound. The kernel is memory-bound."}).encode()
    head = "POST /v1/terminology/checks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(20):
        assert server.send(head.encode() + body)[0] == 201
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
        time.sleep(0.4)
        for worker in workers_of(server):
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
    body = json.dumps({"text": "Decode is memory-bound."}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    url = f"http://127.0.0.1:{server.port}/v1/terminology/checks"
    while True:
        try:
            urlopen(Request(url, body, headers), timeout=5).close()
            return
        except OSError:
            time.sleep(0.02)


def workers_of(server: Server) -> list[int]:
    tasks = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return [int(each) for each in tasks.read_text().split()]


def test_a_stopped_server_ends_cleanly_and_leaves_nothing_behind(server: Server):
    assert list(server.temporary.iterdir())
    assert server.stop() == 0
    assert list(server.temporary.iterdir()) == []
    assert list(server.home.iterdir()) == []
