from __future__ import annotations

import base64
import json

import pytest
from flask.testing import FlaskClient

from tests.web.bodies import HARDWARE
from tests.web.problems import only_error, problem

LISTS = [
    "/v1/hardware-profiles", "/v1/model-profiles", "/v1/plans", "/v1/fleets/allocations",
    "/v1/terminology/rules",
]  # fmt: skip
each_list = pytest.mark.parametrize("route", LISTS)


def names(client: FlaskClient, address: str, limit: int) -> list[str]:
    """The names on all pages of a list."""
    found: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{address}limit={limit}{cursor}").get_json()
        assert len(page["items"]) <= limit
        found += [item["name"] for item in page["items"]]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


@each_list
def test_a_list_has_items_a_next_cursor_and_an_etag(shared_client: FlaskClient, route: str):
    response = shared_client.get(route)
    assert list(response.get_json()) == ["items", "next_cursor"]
    assert response.headers["ETag"]


@pytest.mark.parametrize("limit", [1, 7, 200])
def test_pages_of_any_size_hold_every_item_once_in_order(shared_client: FlaskClient, limit: int):
    found = names(shared_client, "/v1/model-profiles?", limit)
    assert len(found) == len(set(found)) >= 30
    assert found == sorted(found)


def test_items_added_between_pages_repeat_and_hide_nothing(client: FlaskClient):
    before = names(client, "/v1/hardware-profiles?", 200)
    first = client.get("/v1/hardware-profiles?limit=10").get_json()
    for name in ("a-first", "zz-last"):
        client.post("/v1/hardware-profiles", json=HARDWARE | {"name": name})
    rest = client.get(f"/v1/hardware-profiles?limit=200&cursor={first['next_cursor']}").get_json()
    found = [item["name"] for item in first["items"] + rest["items"]]
    assert found == [*before, "zz-last"]


def test_filters_select_by_vendor_and_family(shared_client: FlaskClient):
    items = shared_client.get("/v1/hardware-profiles?vendor=amd").get_json()["items"]
    assert items
    assert {item["vendor"] for item in items} == {"amd"}
    items = shared_client.get("/v1/model-profiles?family=qwen3_moe").get_json()["items"]
    assert items
    assert {item["architecture"]["family"] for item in items} == {"qwen3_moe"}
    assert names(shared_client, "/v1/hardware-profiles?vendor=amd&", 2) == sorted(
        names(shared_client, "/v1/hardware-profiles?vendor=amd&", 200)
    )
    assert shared_client.get("/v1/hardware-profiles?vendor=none").get_json()["items"] == []


@each_list
@pytest.mark.parametrize("limit", ["0", "201", "-1", "1.5", "", "abc", "1e2", "١", " 1", "9" * 40])
def test_a_limit_out_of_bounds_is_refused_with_the_bounds(
    shared_client: FlaskClient, route: str, limit: str
):
    error = only_error(shared_client.get(route, query_string={"limit": limit}), "/limit")
    assert error["allowed"] == {"minimum": 1, "maximum": 200}


WITHOUT_LIST = base64.urlsafe_b64encode(b'{"after": 1}').decode()


@each_list
@pytest.mark.parametrize("cursor", ["", "x", "\x00", "é", "😀", "e30=", "A" * 3000, WITHOUT_LIST])
def test_a_forged_cursor_is_400(shared_client: FlaskClient, route: str, cursor: str):
    response = shared_client.get(route, query_string={"cursor": cursor})
    only_error(response, "/cursor", 400)


def test_a_cursor_of_another_list_or_filter_is_400(shared_client: FlaskClient):
    cursor = shared_client.get("/v1/hardware-profiles?limit=1").get_json()["next_cursor"]
    for address in ("/v1/model-profiles?", "/v1/plans?", "/v1/hardware-profiles?vendor=amd&"):
        problem(shared_client.get(f"{address}cursor={cursor}"), 400)
    content = json.loads(base64.urlsafe_b64decode(cursor))
    content["after"] = "zzz' OR 1=1"
    forged = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
    assert shared_client.get(f"/v1/hardware-profiles?cursor={forged}").status_code in (200, 400)
