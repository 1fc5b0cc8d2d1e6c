"""The service as its users run it: a server with its workers, over real sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]


class Refused(OSError):
    """An answer of 4xx or 5xx."""

    def __init__(self, status: int, headers: Message, body: bytes) -> None:
        super().__init__(status, body.decode())
        self.status, self.headers, self.problem = status, headers, json.loads(body)


@dataclass(frozen=True)
class Server:
    process: subprocess.Popen[bytes]
    port: int
    home: Path
    temporary: Path
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> str:
        return self._answer(Request(f"{self.url}{path}"), timeout=10).decode()

    def post(self, path: str, body: object, key: str | None = None, timeout: float = 10) -> dict:
        """The answer to a body of JSON. Raises `Refused`, or another OSError without an answer."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        request = Request(f"{self.url}{path}", json.dumps(body).encode(), headers)
        return json.loads(self._answer(request, timeout))

    def _answer(self, request: Request, timeout: float) -> bytes:
        try:
            with urlopen(request, timeout=timeout) as answer:
                return answer.read()
        except HTTPError as refused:
            with refused:
                raise Refused(refused.code, refused.headers, refused.read()) from None
        except HTTPException as error:
            # A worker can end in the middle of an answer.
            raise ConnectionError(repr(error)) from error

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

    def workers(self) -> list[int]:
        """Process ids."""
        tasks = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(each) for each in tasks.read_text().split()]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


@contextmanager
def running(
    database_url: str,
    folder: Path,
    changes: Mapping[str, str] | None = None,
    application: str | None = None,
) -> Iterator[Server]:
    """A server on a migrated database, with its files in `folder`, until the block ends; `changes`
    are settings, `application` another one to serve."""
    port, home, temporary = free_port(), folder / "home", folder / "temporary"
    home.mkdir(parents=True)
    temporary.mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in _DROPPED} | {
        "ADVISOR_DATABASE_URL": database_url,
        "ADVISOR_PORT": str(port),
        "HOME": str(home),
        "TMPDIR": str(temporary),
        **(changes or {}),
    }
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_GUNICORN, *([] if application is None else [application])],
            env=environment,
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


_GUNICORN = (sys.executable, "-m", "gunicorn", "--config", "python:advisor.gunicorn_conf")
_DROPPED = ("XDG_RUNTIME_DIR", "ADVISOR_HOST")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)
