"""Requests generated from the specification, from seeds that are printed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import schemathesis
from flask import Flask
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema

from tests.contract.test_schemathesis import CONFIG

EXAMPLES = 25
"""For each operation and phase: a seed gives some thousands of requests."""


def statuses(app: Flask, number: int) -> Counter[int]:
    """What at least so many requests, from at least one seed, were answered."""
    found: Counter[int] = Counter()
    while found.total() < number:
        seed = random.SystemRandom().randrange(2**31)
        found.update(_answered(app, seed))
        print(f"seed {seed}: {found.total():,} requests so far", flush=True)
    return found


def _answered(app: Flask, seed: int) -> Iterator[int]:
    generation = {"max-examples": EXAMPLES, "database": "none", "deterministic": False}
    settings: dict[str, Any] = CONFIG | {"seed": seed, "generation": generation}
    # Its WSGI client asks for compressed answers that it cannot read.
    config = SchemathesisConfig.from_dict(settings | {"headers": {"Accept-Encoding": "identity"}})
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app, config=config)
    for event in from_schema(schema).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.ScenarioFinished):
            for interaction in event.recorder.interactions.values():
                if interaction.response is not None:
                    yield interaction.response.status_code
