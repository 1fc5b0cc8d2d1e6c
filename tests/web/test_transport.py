"""What proxies and browsers see of an answer: compression, ETags, CORS."""

from __future__ import annotations

import gzip

import pytest
from flask.testing import FlaskClient

from advisor.web.spec import spec_document
from tests.web.fixtures import running_app

LIST = "/v1/hardware-profiles?limit=50"
ONE = "/v1/model-profiles/deepseek-v3"
GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.parametrize("path", [LIST, "/openapi.json", "/v1/terminology/rules"])
def test_a_large_answer_is_compressed_where_that_is_accepted(shared_client: FlaskClient, path: str):
    plain, packed = shared_client.get(path), shared_client.get(path, headers=GZIP)
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data) / 2
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert packed.headers["ETag"] != plain.headers["ETag"]


def test_a_small_answer_is_not_compressed(shared_client: FlaskClient):
    assert "Content-Encoding" not in shared_client.get("/healthz", headers=GZIP).headers


def test_an_export_is_compressed_as_it_is_read(shared_client: FlaskClient):
    path = "/v1/exports/hardware-profiles"
    packed = shared_client.get(path, headers=GZIP)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == shared_client.get(path).data


def test_files_of_the_docs_page_are_sent_as_they_are(shared_client: FlaskClient):
    for name in ("start.js", "swagger-ui.css", "swagger-ui-bundle.js"):
        with shared_client.get(f"/docs/assets/{name}", headers=GZIP) as answer:
            assert answer.status_code == 200
            assert "Content-Encoding" not in answer.headers


@pytest.mark.parametrize("encoding", ["", "br", "zstd", "identity", "nonsense;q=x", ","])
def test_no_other_compression_is_made(shared_client: FlaskClient, encoding: str):
    answer = shared_client.get(LIST, headers={"Accept-Encoding": encoding})
    assert answer.status_code == 200
    assert "Content-Encoding" not in answer.headers


def test_an_unchanged_answer_is_304_compressed_or_not(shared_client: FlaskClient):
    document = spec_document(shared_client.application)
    lists = [
        path
        for path, item in document["paths"].items()
        if any(each["name"] == "cursor" for each in item.get("get", {}).get("parameters", ()))
        and "{" not in path
    ]
    assert len(lists) >= 8
    for path in [*lists, ONE, "/openapi.json"]:
        for headers in ({}, GZIP):
            tag = shared_client.get(path, headers=headers).headers["ETag"]
            again = shared_client.get(path, headers=headers | {"If-None-Match": tag})
            assert (again.status_code, again.data) == (304, b""), path
            assert again.headers["ETag"] == tag
            other = shared_client.get(path, headers=headers | {"If-None-Match": '"other"'})
            assert other.status_code == 200


def test_the_tag_of_a_compressed_profile_will_do_for_a_change(client: FlaskClient):
    tag = client.get(ONE, headers=GZIP).headers["ETag"]
    assert client.delete(ONE, headers={"If-Match": '"7:gzip"'}).status_code == 412
    assert client.delete(ONE, headers={"If-Match": tag}).status_code == 204


def test_pages_of_listed_origins_may_send_and_read(sqlite_url: str):
    origins = "https://tools.example.com,http://localhost:3000"
    for app in running_app(sqlite_url, cors_origins=origins):
        client = app.test_client()
        for origin in origins.split(","):
            answer = client.get("/v1/plans", headers={"Origin": origin})
            assert answer.headers["Access-Control-Allow-Origin"] == origin
            assert "Origin" in answer.headers["Vary"]
            assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
            asked = {
                "Origin": origin,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization, content-type, idempotency-key",
            }
            preflight = client.options("/v1/plans", headers=asked)
            assert preflight.status_code == 200
            assert "POST" in preflight.headers["Access-Control-Allow-Methods"]
            allowed = preflight.headers["Access-Control-Allow-Headers"].lower()
            assert {"authorization", "content-type", "idempotency-key"} <= set(allowed.split(", "))
            failed = client.get("/nothing", headers={"Origin": origin})
            assert failed.headers["Access-Control-Allow-Origin"] == origin


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "https://tools.example.com.evil.example",
        "null",
        "https://toolsXexample.com",
    ],
)
def test_pages_of_other_origins_may_not(sqlite_url: str, origin: str):
    for origins in ("https://tools.example.com", ""):
        for app in running_app(sqlite_url, cors_origins=origins):
            answer = app.test_client().get("/v1/plans", headers={"Origin": origin})
            assert answer.status_code == 200
            assert not [name for name, _ in answer.headers if name.startswith("Access-Control")]
