"""The application against its own specification, by generated requests: bounded and repeatable."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from advisor.service.keys import Keys
from tests.web.fixtures import running_app

schemathesis.serializer.alias(["application/jsonl", "text/csv"], "text/plain")

CONFIG = {
    "seed": 20260925,
    "continue-on-failure": True,
    "generation": {"max-examples": 5, "database": "none", "deterministic": True},
    "phases": {"stateful": {"generation": {"max-examples": 2}, "max-steps": 4}},
    "checks": {
        # The contract answers 422 to names that do not exist and to fields that contradict each
        # other, which no schema can express.
        "positive_data_acceptance": {"enabled": False},
        # A text longer than allowed may make a body larger than allowed: 413. Lines of a file are
        # refused one by one: 207.
        "negative_data_rejection": {"expected-statuses": ["4xx", "207"]},
        # It cannot call a WSGI application; tests/web/test_api_keys.py tries every operation
        # without a key.
        "ignored_auth": {"enabled": False},
        "missing_required_header": {"expected-statuses": [428]},
    },
}


@pytest.mark.filterwarnings("default")  # the library's own are none of ours
def test_generated_requests_find_no_difference_from_the_specification(catalogued_url: str):
    for app in running_app(catalogued_url, authentication="required"):
        key = Keys(app.extensions["advisor-database"], "").create("anyone", "admin")
        # Its WSGI client asks for compressed answers that it cannot read.
        headers = {"Authorization": f"Bearer {key}", "Accept-Encoding": "identity"}
        compare(app, CONFIG | {"headers": headers})


def compare(app: Flask, settings: dict[str, Any]) -> None:
    config = SchemathesisConfig.from_dict(settings)
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    failures, cases = [], 0
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            cases += len(event.recorder.cases)
            for checks in event.recorder.checks.values():
                failures += [
                    f"{event.label}: {check.name}: {check.failure_info.failure}"
                    for check in checks
                    if check.failure_info is not None
                ]
        elif isinstance(event, events.NonFatalError | events.FatalError):
            failures.append(repr(event))
    assert sorted(set(failures)) == []
    assert cases > 500
