from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from flask import Flask
from playwright.sync_api import Browser, Page, expect

from advisor.config import Settings
from advisor.web.app import create_app
from advisor.web.spec import spec_document
from tests.browser.chromium import served

OPERATIONS = [
    operation
    for path in spec_document(create_app(Settings()))["paths"].values()
    for method, operation in path.items()
    if method != "parameters"
]


@pytest.fixture
def address(app: Flask) -> Iterator[str]:
    """The address of the application."""
    with served(app) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that notes its console, its errors and every address it asks for."""
    page = browser.new_page()
    yield page
    page.close()


def test_the_docs_page_shows_the_operations_under_its_policy_and_asks_nobody_else(
    page: Page, address: str
):
    console: list[str] = []
    requested: list[str] = []
    # A blocked script or style is an error on the console, too.
    page.on("console", lambda message: console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: console.append(str(error)))
    page.on("request", lambda request: requested.append(request.url))
    page.goto(address)
    expect(page.locator(".opblock-summary")).to_have_count(len(OPERATIONS))
    expect(page.get_by_text("Plan the serving of a model")).to_be_visible()
    page.get_by_role("button", name="POST /v1/plans Plan the serving").click()
    expect(page.get_by_text("Evaluates every plan within the limits")).to_be_visible()
    expect(page.locator(".opblock-body").get_by_text('"meta-llama-3.1-70b"')).to_be_visible()
    assert page.url == f"{address}/docs#/plans/create_plan"
    hosts = {urlsplit(url).netloc for url in requested if not url.startswith("data:")}
    assert hosts == {urlsplit(address).netloc}
    assert console == []


def test_an_operation_can_be_tried_from_the_page(page: Page, address: str):
    page.goto(f"{address}/docs#/economics/compute_break_even")
    page.get_by_role("button", name="Try it out").click()
    page.get_by_role("button", name="Execute").click()
    response = page.locator(".live-responses-table")
    expect(response.get_by_text('"break_even_calls": 929333334')).to_be_visible()
