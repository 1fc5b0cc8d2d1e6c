from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from flask import Flask

from advisor.service.keys import Keys
from tests.servers import wait_until
from tests.web.fixtures import running_app
from tests.web.problems import problem

RULES = "/v1/terminology/rules?limit=1"
SERVER = os.environ.get("REDIS_SERVER") or shutil.which("redis-server") or shutil.which(
    "valkey-server"
)  # fmt: skip


def statuses(app: Flask, count: int, **headers: str) -> Counter[int]:
    client = app.test_client()
    return Counter(client.get(RULES, headers=headers).status_code for _ in range(count))


def test_requests_past_the_limit_are_429_and_say_when_to_come_back(sqlite_url: str):
    for app in running_app(sqlite_url, rate_limit_per_minute=3):
        client = app.test_client()
        for remaining in (2, 1, 0):
            answer = client.get(RULES)
            assert answer.status_code == 200
            assert answer.headers["RateLimit-Limit"] == "3"
            assert answer.headers["RateLimit-Policy"] == "3;w=60"
            assert answer.headers["RateLimit-Remaining"] == str(remaining)
            assert 0 < int(answer.headers["RateLimit-Reset"]) <= 60
            assert "Retry-After" not in answer.headers
        answer = client.post("/v1/plans", json={})
        assert "3 requests" in problem(answer, 429)["detail"]
        assert 0 < int(answer.headers["Retry-After"]) <= 60
        assert answer.headers["RateLimit-Remaining"] == "0"


def test_probes_and_docs_are_not_counted(sqlite_url: str):
    for app in running_app(sqlite_url, rate_limit_per_minute=1):
        for path in ("/healthz", "/readyz", "/metrics", "/docs") * 3:
            answer = app.test_client().get(path)
            assert answer.status_code == 200
            assert "RateLimit-Limit" not in answer.headers
        assert statuses(app, 2) == {200: 1, 429: 1}


def test_each_key_has_a_limit_of_its_own_and_so_has_each_address(sqlite_url: str):
    for app in running_app(sqlite_url, rate_limit_per_minute=2, authentication="required"):
        keys = Keys(app.extensions["advisor-database"], "")
        for name in ("one", "two"):
            key = f"Bearer {keys.create(name, 'read')}"
            assert statuses(app, 3, Authorization=key) == {200: 2, 429: 1}
        assert statuses(app, 3) == {401: 2, 429: 1}
        wrong = {"REMOTE_ADDR": "192.0.2.1"}
        assert app.test_client().get(RULES, environ_base=wrong).status_code == 401


def test_only_trusted_proxies_tell_the_address(sqlite_url: str):
    for app in running_app(sqlite_url, rate_limit_per_minute=1):
        assert statuses(app, 1, **{"X-Forwarded-For": "192.0.2.1"}) == {200: 1}
        assert statuses(app, 1, **{"X-Forwarded-For": "192.0.2.2"}) == {429: 1}
    for app in running_app(sqlite_url, rate_limit_per_minute=1, trusted_proxies=1):
        assert statuses(app, 2, **{"X-Forwarded-For": "192.0.2.1"}) == {200: 1, 429: 1}
        # What a client claims itself stands before what the proxy adds.
        assert statuses(app, 1, **{"X-Forwarded-For": "192.0.2.3, 192.0.2.1"}) == {429: 1}
        assert statuses(app, 1, **{"X-Forwarded-For": "192.0.2.2"}) == {200: 1}


def test_without_a_limit_nothing_is_counted(shared_client):
    assert "RateLimit-Limit" not in shared_client.get(RULES).headers


def test_a_store_that_is_away_leaves_each_process_to_count_by_itself(sqlite_url: str):
    storage = "redis://127.0.0.1:1"
    for app in running_app(sqlite_url, rate_limit_per_minute=2, rate_limit_storage=storage):
        assert statuses(app, 3) == {200: 2, 429: 1}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    if SERVER is None:
        pytest.skip("no redis-server or valkey-server: apt-get install redis-server")
    path = tmp_path / "redis.sock"
    command = [
        SERVER,
        "--port",
        "0",
        "--unixsocket",
        str(path),
        "--save",
        "",
        "--dir",
        str(tmp_path),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(path))
        yield f"redis+unix://{path}"
    finally:
        process.kill()
        process.wait()


def _listens(path: Path) -> bool:
    """Whether a server takes connections at the socket: the file is there before it does."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def test_processes_that_count_in_one_store_share_the_limit(sqlite_url: str, redis: str):
    for one in running_app(sqlite_url, rate_limit_per_minute=4, rate_limit_storage=redis):
        for other in running_app(sqlite_url, rate_limit_per_minute=4, rate_limit_storage=redis):
            assert statuses(one, 3) == {200: 3}
            assert statuses(other, 3) == {200: 1, 429: 2}
