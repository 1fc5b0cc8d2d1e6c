from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.web.bodies import ARCHITECTURE, HARDWARE, MAMBA2_LAYER, MODEL
from tests.web.fixtures import running_app
from tests.web.problems import only_error, problem

BODIES = {"/v1/hardware-profiles": HARDWARE, "/v1/model-profiles": MODEL}
each_kind = pytest.mark.parametrize("route", BODIES)


@pytest.fixture
def empty_client(database_url: str) -> Iterator[FlaskClient]:
    """A client on an empty database, once of each kind."""
    for app in running_app(database_url):
        yield app.test_client()


def renamed(body: dict[str, Any], name: str) -> dict[str, Any]:
    return body | {"name": name, "aliases": []} if "aliases" in body else body | {"name": name}


@each_kind
def test_a_profile_is_read_back_as_it_was_created(empty_client: FlaskClient, route: str):
    created = empty_client.post(route, json=BODIES[route])
    assert created.status_code == 201
    assert created.headers["Location"] == f"{route}/{BODIES[route]['name']}"
    read = empty_client.get(created.headers["Location"])
    assert read.status_code == 200
    assert read.get_json() == created.get_json()
    assert read.headers["ETag"] == created.headers["ETag"] == '"1"'
    assert read.get_json()["origin"] == "user"


def test_a_hardware_profile_keeps_every_field_that_was_given(client: FlaskClient):
    answer = client.post("/v1/hardware-profiles", json=HARDWARE).get_json()
    assert {key: answer[key] for key in HARDWARE} == HARDWARE


def test_an_architecture_is_read_back_with_every_default_filled_in(client: FlaskClient):
    answer = client.post("/v1/model-profiles", json=ARCHITECTURE).get_json()
    shape = answer["architecture"]
    given = ARCHITECTURE["architecture"]
    read = [shape["layer_kinds"][name] for name in shape["layer_pattern"]]
    assert read == [given["layer_kinds"][name] for name in given["layer_pattern"]]
    again = client.post(
        "/v1/model-profiles", json={"name": "copy", "architecture": shape}
    ).get_json()
    assert again["architecture"] == shape
    assert again["parameters"] == answer["parameters"]


@each_kind
def test_a_name_that_is_taken_is_409_naming_the_item(empty_client: FlaskClient, route: str):
    empty_client.post(route, json=BODIES[route])
    document = problem(empty_client.post(route, json=BODIES[route]), 409)
    assert document["item"] == f"{route}/{BODIES[route]['name']}"
    assert document["item"] in document["detail"]
    assert empty_client.get(document["item"]).status_code == 200


def test_an_alias_that_is_taken_is_409_naming_the_model_that_has_it(empty_client: FlaskClient):
    empty_client.post("/v1/model-profiles", json=MODEL)
    other = MODEL | {"name": "another"}
    document = problem(empty_client.post("/v1/model-profiles", json=other), 409)
    assert document["item"] == f"/v1/model-profiles/{MODEL['name']}"
    renamed_model = other | {"aliases": []}
    created = empty_client.post("/v1/model-profiles", json=renamed_model)
    response = empty_client.put(
        "/v1/model-profiles/another", json=other, headers={"If-Match": created.headers["ETag"]}
    )
    document = problem(response, 409)
    assert document["item"] == f"/v1/model-profiles/{MODEL['name']}"


@each_kind
def test_a_change_needs_the_etag_of_the_version_it_changes(empty_client: FlaskClient, route: str):
    body = BODIES[route]
    item = f"{route}/{body['name']}"
    empty_client.post(route, json=body)
    for method in ("PUT", "DELETE"):
        problem(empty_client.open(item, method=method, json=body), 428)
        for stale in ('"2"', '"0"', '"abc"', '"2", "3"', 'W/"1"', '""'):
            response = empty_client.open(
                item, method=method, json=body, headers={"If-Match": stale}
            )
            assert "1" in problem(response, 412)["detail"]
            assert response.headers["ETag"] == '"1"'
    replaced = empty_client.put(item, json=body, headers={"If-Match": '"1"'})
    assert (replaced.status_code, replaced.headers["ETag"]) == (200, '"2"')
    problem(empty_client.put(item, json=body, headers={"If-Match": '"1"'}), 412)
    assert empty_client.put(item, json=body, headers={"If-Match": '"7", "2"'}).status_code == 200
    assert empty_client.put(item, json=body, headers={"If-Match": "*"}).status_code == 200
    deleted = empty_client.delete(item, headers={"If-Match": '"4"'})
    assert (deleted.status_code, deleted.data) == (204, b"")
    problem(empty_client.get(item), 404)
    for headers in ({"If-Match": '"4"'}, {"If-Match": "*"}):
        problem(empty_client.delete(item, headers=headers), 404)
        problem(empty_client.put(item, json=body, headers=headers), 404)


@each_kind
def test_an_etag_from_before_a_deletion_matches_nothing_after_it(
    empty_client: FlaskClient, route: str
):
    item = empty_client.post(route, json=BODIES[route]).headers["Location"]
    empty_client.delete(item, headers={"If-Match": '"1"'})
    again = empty_client.post(route, json=BODIES[route])
    assert again.status_code == 201
    assert again.headers["ETag"] != '"1"'
    problem(empty_client.delete(item, headers={"If-Match": '"1"'}), 412)


@each_kind
def test_a_read_with_the_current_etag_is_304(shared_client: FlaskClient, route: str):
    item = shared_client.get(f"{route}?limit=1").get_json()["items"][0]["name"]
    for address in (f"{route}/{item}", f"{route}?limit=1"):
        etag = shared_client.get(address).headers["ETag"]
        response = shared_client.get(address, headers={"If-None-Match": etag})
        assert (response.status_code, response.data) == (304, b"")
        assert response.headers["ETag"] == etag
        response = shared_client.get(address, headers={"If-None-Match": '"other"'})
        assert response.status_code == 200


@each_kind
def test_a_replacement_keeps_the_name(client: FlaskClient, route: str):
    body = BODIES[route]
    item = client.post(route, json=body).headers["Location"]
    response = client.put(item, json=renamed(body, "other"), headers={"If-Match": '"1"'})
    error = only_error(response, "/name")
    assert (error["given"], error["allowed"]) == ("other", [body["name"]])


@each_kind
def test_read_only_fields_are_refused(client: FlaskClient, route: str):
    answer = client.post(route, json=BODIES[route]).get_json()
    for field in ("origin", "created_at", "updated_at", "warnings"):
        only_error(client.post(route, json=BODIES[route] | {field: answer[field]}), f"/{field}")


def test_a_deleted_catalogue_entry_stays_deleted_and_a_changed_one_changed(app: Flask):
    from advisor.service import catalogue

    client = app.test_client()
    for name in ("h100-sxm-80gb", "a100-sxm-80gb"):
        etag = client.get(f"/v1/hardware-profiles/{name}").headers["ETag"]
        changed = HARDWARE | {"name": name}
        if name.startswith("h"):
            client.delete(f"/v1/hardware-profiles/{name}", headers={"If-Match": etag})
        else:
            client.put(f"/v1/hardware-profiles/{name}", json=changed, headers={"If-Match": etag})
    counts = catalogue.load(app.extensions["advisor-database"])
    assert counts["hardware"].added == counts["hardware"].updated == 0
    problem(client.get("/v1/hardware-profiles/h100-sxm-80gb"), 404)
    kept = client.get("/v1/hardware-profiles/a100-sxm-80gb").get_json()
    assert (kept["origin"], kept["notes"]) == ("user", HARDWARE["notes"])


def test_an_unknown_name_in_a_path_is_404_with_the_nearest(shared_client: FlaskClient):
    response = shared_client.get("/v1/hardware-profiles/h100-sxm-80g")
    error = only_error(response, "/name", 404)
    assert error["nearest"] == "h100-sxm-80gb"


def test_a_model_is_also_read_by_an_alias(client: FlaskClient):
    client.post("/v1/model-profiles", json=MODEL | {"aliases": ["other-spelling"]})
    answer = client.get("/v1/model-profiles/other-spelling")
    assert answer.get_json()["name"] == MODEL["name"]


REFUSED_LINKS = {
    "no bandwidth": ({"bandwidth_gb_s_per_direction": 0}, "bandwidth_gb_s_per_direction"),
    "none with bandwidth": ({"kind": "none", "domain_size": 1}, "bandwidth_gb_s_per_direction"),
    "none that joins": ({"kind": "none", "bandwidth_gb_s_per_direction": 0}, "domain_size"),
    "unknown kind": ({"kind": "nvlinks"}, "kind"),
    "unknown topology": ({"topology": "ring"}, "topology"),
}


@pytest.mark.parametrize(("change", "field"), REFUSED_LINKS.values(), ids=REFUSED_LINKS)
def test_a_link_that_contradicts_itself_is_refused(
    shared_client: FlaskClient, change: dict[str, Any], field: str
):
    body = HARDWARE | {"interconnect": HARDWARE["interconnect"] | change}
    only_error(shared_client.post("/v1/hardware-profiles", json=body), f"/interconnect/{field}")


def test_no_link_needs_no_figures(client: FlaskClient):
    body = HARDWARE | {"interconnect": {"kind": "none"}}
    answer = client.post("/v1/hardware-profiles", json=body).get_json()
    assert answer["interconnect"]["domain_size"] == 1
    again = body | {"name": "again", "interconnect": answer["interconnect"]}
    assert client.post("/v1/hardware-profiles", json=again).status_code == 201


def test_suspicious_magnitudes_are_warned_of_and_kept(client: FlaskClient):
    body = copy.deepcopy(HARDWARE) | {"memory_gib": 80}
    body["dense_tflops"] = {"bf16": 1979, "fp8": 3958}
    body["interconnect"]["bandwidth_gb_s_per_direction"] = 900
    body["price"]["as_of"] = None
    created = client.post("/v1/hardware-profiles", json=body)
    assert created.status_code == 201
    codes = [warning["code"] for warning in created.get_json()["warnings"]]
    assert codes == [
        "suspect_sparse_tflops",
        "suspect_sparse_tflops",
        "suspect_both_directions",
        "suspect_gb_for_gib",
        "undated_price",
    ]


def test_an_unknown_architecture_is_refused_naming_the_key(shared_client: FlaskClient):
    config = MODEL["hf_config"]
    cases = {
        "/hf_config/model_type": config | {"model_type": "lama"},
        "/hf_config/hidden_size": {k: v for k, v in config.items() if k != "hidden_size"},
        "/hf_config/num_attention_heads": config | {"num_attention_heads": "32"},
        "/hf_config": {"a": {"b": {"c": [[[[[[[[[[[1]]]]]]]]]]]}}},
    }
    for pointer, changed in cases.items():
        body = {"name": "x", "hf_config": changed}
        error = only_error(shared_client.post("/v1/model-profiles", json=body), pointer)
        assert error["detail"]


def test_a_model_has_exactly_one_shape(shared_client: FlaskClient):
    both = MODEL | {"architecture": ARCHITECTURE["architecture"]}
    neither = {"name": "x"}
    for body in (both, neither):
        error = only_error(shared_client.post("/v1/model-profiles", json=body), "/hf_config")
        assert error["allowed"] == ["hf_config", "architecture"]


def changed_layer(name: str, part: str, **changes: Any) -> dict[str, Any]:
    """One layer kind with other values in a part of it, and a pattern of it alone."""
    layer = copy.deepcopy(ARCHITECTURE["architecture"]["layer_kinds"][name])
    layer[part] |= changes
    return {"layer_kinds": {"one": layer}, "layer_pattern": ["one"]}


def layer_of(**parts: Any) -> dict[str, Any]:
    """A pattern of one layer with these parts."""
    return {"layer_kinds": {"one": parts}, "layer_pattern": ["one"]}


REFUSED_SHAPES = {
    "/architecture/layer_pattern/1": {"layer_pattern": ["dense", "mo"]},
    "/architecture/layer_pattern": {"num_layers": 1},
    "/architecture/quantized_parts/1": {"quantized_parts": ["mlp", "mlp"]},
    "/architecture/layer_kinds/dense/mixer/kind": {
        "layer_kinds": {"dense": {"mixer": {"kind": "rnn"}, "mlp": {"kind": "dense"}}}
    },
    "/architecture/layer_kinds/one/mixer/window": changed_layer("dense", "mixer", window=None),
    "/architecture/layer_kinds/one/mixer/index_heads": changed_layer("moe", "mixer", index_heads=0),
    "/architecture/layer_kinds/one/mixer/index_head_dim": changed_layer(
        "moe", "mixer", index_topk=None, index_heads=0
    ),
    "/architecture/layer_kinds/one/mixer/num_groups": changed_layer(
        "mamba2", "mixer", num_groups=5
    ),
    "/architecture/layer_kinds/one/mixer/num_key_heads": changed_layer(
        "linear", "mixer", num_key_heads=5
    ),
    "/architecture/layer_kinds/one/mixer": layer_of(mixer=None, mlp=None),
    "/architecture/layer_kinds/one/mlp": layer_of(
        mixer=MAMBA2_LAYER["mixer"], mlp=None, parallel=True
    ),
}


@pytest.mark.parametrize("pointer", REFUSED_SHAPES)
def test_an_architecture_that_contradicts_itself_is_refused(
    shared_client: FlaskClient, pointer: str
):
    body = {"name": "x", "architecture": ARCHITECTURE["architecture"] | REFUSED_SHAPES[pointer]}
    errors = problem(shared_client.post("/v1/model-profiles", json=body), 422)["errors"]
    assert pointer in [error["pointer"] for error in errors]
