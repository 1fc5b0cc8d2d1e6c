"""From the fields of the explorer to requests and back; no browser."""

from __future__ import annotations

import json
import math
import subprocess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.errors import FieldError, InvalidInput
from advisor.explorer import fields
from advisor.explorer.requests import body_of, curl, placed, text_of
from advisor.explorer.state import Values, defaults, fields_of, query_of, values_of
from advisor.schemas.economics.break_even import BreakEvenBody, SensitivityBody
from advisor.schemas.economics.serving import SelfHostBody
from advisor.schemas.faults import loaded
from advisor.schemas.plans import PlanBody
from advisor.schemas.terminology import CheckBody
from advisor.web.strict_json import parse

FORMS = {"plan": fields.PLAN, "break-even": fields.BREAK_EVEN, "self-host": fields.SELF_HOST,
         "terminology": fields.TERMINOLOGY}  # fmt: skip
BODIES = {"plan": PlanBody, "break-even": SensitivityBody, "self-host": SelfHostBody,
          "terminology": CheckBody}  # fmt: skip
PLAN = fields_of(fields.PLAN)


def plan_body(**changed: Any) -> dict[str, Any]:
    return body_of(PLAN, defaults(fields.PLAN) | changed, parse)


@given(st.data())
def test_an_address_gives_back_every_value(data: st.DataObject):
    text = st.text(st.characters(codec="utf-8"), max_size=300)
    name = st.text("abcxyz0189-._", min_size=1, max_size=12)
    for form in FORMS.values():
        values: Values = {}
        for field in fields_of(form):
            if field.many:
                values[field.name] = data.draw(st.lists(name, max_size=4, unique=True))
            else:
                choices = [value for value, _ in field.choices]
                values[field.name] = data.draw(st.sampled_from(choices) if choices else text)
        values["answer-3"] = "both"
        assert values_of(form, "?" + query_of(values)) == values


@pytest.mark.parametrize(
    "query", ["?text.z=!!!", "?text.z=AAAA", "?text.z=%ff", "?nothing", "?=&&"]
)
def test_a_made_up_address_is_an_empty_form(query: str):
    assert values_of(fields.TERMINOLOGY, query)["text"] in (
        "",
        defaults(fields.TERMINOLOGY)["text"],
    )


@pytest.mark.parametrize("form", FORMS)
def test_the_defaults_of_a_form_are_a_request_that_the_api_takes(form: str):
    groups = FORMS[form]
    body = body_of(fields_of(groups), values_of(groups, ""), parse)
    loaded(BODIES[form](), parse(text_of(body).encode()))
    if form == "break-even":
        del body["swing"]
        loaded(BreakEvenBody(), body)


@pytest.mark.parametrize("form", FORMS)
def test_every_field_stands_in_a_request_where_the_schema_has_it(form: str):
    schema = BODIES[form]()
    for field in fields_of(FORMS[form]):
        top = field.pointer.split("/")[1]
        assert top in schema.fields, field.name
        for value, _ in field.choices if field.name != "load" else ():
            given_value = [value] if field.many else value
            values = {**defaults(FORMS[form]), field.name: given_value}
            body = body_of(fields_of(FORMS[form]), values, parse)
            loaded(schema, body)


def test_a_body_has_numbers_as_they_were_written_and_no_empty_field():
    body = plan_body(request_rate_per_s="0.30", input_tokens_p95="2e3", tensor_parallel="1, 2",
                     ttft_p95_ms="", weights=["fp8"])  # fmt: skip
    assert body["workload"] == {
        "request_rate_per_s": 0.3,
        "input_tokens": {"mean": 1000, "p95": 2000.0},
        "output_tokens": 250,
    }
    assert body["slo"] == {"tpot_p95_ms": 50}
    assert body["limits"] == {"tensor_parallel": [1, 2]}
    assert body["precision"] == {"weights": ["fp8"]}
    assert plan_body(load="saturate")["workload"]["saturate"] is True
    assert "request_rate_per_s" not in plan_body(load="concurrency")["workload"]


@pytest.mark.parametrize("text", ["many", "1e999", "NaN", "--1", "1,5", "9" * 400, "٣", " "])
def test_what_is_no_number_is_left_for_the_schema_to_refuse(text: str):
    body = plan_body(request_rate_per_s=text)
    value = body["workload"]["request_rate_per_s"]
    assert isinstance(value, str) or math.isfinite(value)
    with pytest.raises(InvalidInput) as refused:
        loaded(PlanBody(), body)
    by_field, others = placed(refused.value.errors, PLAN)
    assert list(by_field) == ["request_rate_per_s"]
    assert others == []


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        ("/model", "model"),
        ("/model/hf_config/hidden_size", "hf_config"),
        ("/hardware/1", "hardware"),
        ("/workload/input_tokens", "input_tokens"),
        ("/workload/input_tokens/p95", "input_tokens_p95"),
        ("/limits", "max_accelerators"),
        ("/workload/request_rate_per_s", "request_rate_per_s"),
    ],
)
def test_an_error_stands_beside_the_field_it_names(pointer: str, name: str):
    error = FieldError(pointer, "Wrong.", allowed={"minimum": 1}, nearest="this")
    assert placed([error], PLAN) == ({name: ["Wrong. Is this meant?"]}, [])


def test_an_error_of_no_field_is_said_all_the_same():
    assert placed([FieldError("", "Too much.")], PLAN) == ({}, ["The request: Too much."])


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', '{"a": 1, "a": 2}', "[" * 200_000])
def test_a_config_that_is_no_json_is_refused_at_its_field(text: str):
    with pytest.raises(InvalidInput) as refused:
        plan_body(hf_config=text)
    assert [error.pointer for error in refused.value.errors] == ["/model/hf_config"]


@settings(deadline=None, max_examples=30)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40))
def test_a_shell_posts_the_very_body(text: str):
    body = {"text": f'it\'s "$HOME" `id` \\ {text}'}
    command = curl("http://127.0.0.1:8000/v1/plans", body, with_key=True)
    script = f'curl() {{ printf "%s\\0" "$@"; }}; ADVISOR_API_KEY=secret; {command}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    *options, posted = done.stdout.decode().rstrip("\0").split("\0")
    assert json.loads(posted) == body
    assert options == ["-s", "http://127.0.0.1:8000/v1/plans", "-H", "Authorization: Bearer secret",
                       "-H", "Content-Type: application/json", "-d"]  # fmt: skip
