"""The explorer as people use it, in a headless Chromium."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Request,
    Route,
    expect,
)

from advisor.accuracy.predictions import predictions
from advisor.service.keys import Keys
from tests.browser.chromium import served
from tests.web.fixtures import running_app

PAGES = ("", "break-even", "self-host", "terminology", "accuracy")
CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192,
    "num_hidden_layers": 16, "num_attention_heads": 32, "num_key_value_heads": 8,
    "head_dim": 64, "vocab_size": 128256, "max_position_embeddings": 131072,
    "tie_word_embeddings": True, "torch_dtype": "bfloat16",
}  # fmt: skip
Open = Callable[..., Page]
CUT_OFF = """() => [...document.querySelectorAll(".js-plotly-plot")].flatMap((graph) => {
  const { left, right } = graph.getBoundingClientRect();
  return [...graph.querySelectorAll("svg text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return box.width > 0 && (box.left < left - 1 || box.right > right + 1);
  }).map((text) => text.textContent);
})"""
"""The texts of pictures that reach beyond them."""


@pytest.fixture(scope="module")
def database_file(_catalogued_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    copy = tmp_path_factory.mktemp("explorer") / "a.sqlite3"
    return str(shutil.copy(_catalogued_sqlite, copy))


@pytest.fixture(scope="module")
def address(database_file: str) -> Iterator[str]:
    for app in running_app(f"sqlite:///{database_file}"):
        with served(app) as address:
            yield f"{address}/explorer/"


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Open]:
    """Opens pages, and at the end fails for what any of them complained of: on its console, of its
    policy, of addresses elsewhere that it asked."""
    faults: list[str] = []
    contexts: list[BrowserContext] = []

    def open_page(
        path: str = "", *, base: str = address, refused: bool = False, **options: Any
    ) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()

        def note(said: ConsoleMessage) -> None:
            # The browser itself complains of an answer that is 401 or 403.
            expected = refused and said.text.startswith("Failed to load resource")
            if said.type in ("error", "warning") and not expected:
                faults.append(f"{said.type}: {said.text}")

        def look(asked: Request) -> None:
            if urlsplit(asked.url).netloc not in (urlsplit(base).netloc, ""):
                faults.append(asked.url)

        page.on("console", note)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", look)
        page.goto(base + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert faults == []


def expect_drawn(picture: Locator) -> None:
    """A picture is drawn as it comes near what is seen."""
    picture.scroll_into_view_if_needed()
    expect(picture.locator(".main-svg").first).to_be_visible()


def sentence(page: Page) -> Locator:
    return page.locator("#sentence")


def command(page: Page, name: str) -> str:
    return str(page.locator(f"pre[aria-label={name}]").text_content())


def test_from_an_empty_page_to_a_plan_of_a_pasted_model_that_curl_gives_too(opened: Open):
    page = opened()
    expect(sentence(page)).to_contain_text("Run 1 replica x TP4 on h100-sxm-80gb")
    page.get_by_label("or its config.json").fill(json.dumps(CONFIG))
    expect(sentence(page)).to_contain_text("x TP1 on h100-sxm-80gb: 6.88 USD an hour.")
    page.get_by_label("l4", exact=True).check()
    page.get_by_label("Rate [requests/s]").fill("10")
    page.get_by_label("First token, TTFT p95 [ms]").fill("500")
    page.get_by_label("Each token, TPOT p95 [ms]").fill("20")
    # The README has the same question and its answer.
    expect(sentence(page)).to_have_text("Run 1 replica x TP2 on l4: 1.61 USD an hour.")
    expect(page.locator("#answer")).to_contain_text("What binds is tpot_p95_ms")
    done = subprocess.run(
        ["bash", "-c", command(page, "plan_request")], capture_output=True, check=True
    )
    answer = json.loads(done.stdout)
    assert answer["recommended"]["cost"]["per_hour"] == "1.6096"
    assert answer["recommended"]["hardware"] == "l4"


def test_an_address_shows_again_what_was_seen(opened: Open):
    first = opened()
    first.get_by_label("As much as is served").check()
    expect(first.get_by_label("Rate [requests/s]")).to_be_hidden()
    first.get_by_label("Most tokens per accelerator").check()
    first.get_by_label("First token, TTFT p95 [ms]").fill("")
    first.get_by_label("Input, p95 [tokens]").fill("3000")
    first.get_by_label("or its config.json").fill(json.dumps(CONFIG))
    expect(first.locator("#answer")).to_contain_text("Objective throughput")
    expect(sentence(first)).to_contain_text("TP1")
    # What was typed is taken a moment later than what was ticked.
    first.wait_for_url(re.compile("(?=.*hf_config.z=)(?=.*input_tokens_p95=3000)(?!.*ttft)"))
    second = opened(urlsplit(first.url).path.removeprefix("/explorer/") + "?"
                    + urlsplit(first.url).query)  # fmt: skip
    # The second has one answer only; the first may still be showing its last.
    expect(sentence(second)).to_contain_text("USD an hour")
    expect(sentence(first)).to_have_text(str(sentence(second).text_content()))
    expect(second.get_by_label("As much as is served")).to_be_checked()
    expect(second.get_by_label("Input, p95 [tokens]")).to_have_value("3000")
    assert json.loads(second.get_by_label("or its config.json").input_value()) == CONFIG
    assert command(second, "plan_request") == command(first, "plan_request")


def test_an_answer_that_a_later_question_has_overtaken_is_not_shown(opened: Open):
    page = opened()
    expect(sentence(page)).to_contain_text("USD an hour")

    held: list[Route] = []

    def late(route: Route) -> None:
        if '"value":"30"' in (route.request.post_data or ""):
            held.append(route)
        else:
            route.continue_()

    page.route("**/_dash-update-component*", late)
    rate = page.get_by_label("Rate [requests/s]")
    for last in ("20", "4"):
        rate.fill("30")
        page.wait_for_timeout(400)  # a text is taken 200 ms after the last key
        rate.fill(last)
        page.wait_for_timeout(800)
        held.pop().continue_()
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(500)
        assert f'"request_rate_per_s": {last},' in command(page, "plan_request")


def test_a_link_to_an_answered_question_keeps_its_answer(opened: Open):
    text = "Decode+is+memory-bound+and+it+is+not+slow."
    page = opened(f"terminology?text={text}&format=plain&answer-0=capacity")
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)
    expect(page.get_by_role("radio", name="Capacity If")).to_be_checked()


def test_keys_pressed_while_answers_arrive_are_kept_in_their_order(opened: Open):
    page = opened()
    rate = page.get_by_label("Rate [requests/s]")
    rate.fill("")
    for key in "0.1357":
        rate.press(key)
        page.wait_for_timeout(215)  # a text is taken 200 ms after the last key
    expect(rate).to_have_value("0.1357")
    page.wait_for_url("**request_rate_per_s=0.1357&**")


def test_what_cannot_be_accepted_is_said_beside_its_field(opened: Open):
    page = opened()
    rate = page.get_by_label("Rate [requests/s]")
    rate.fill("many")
    wrong = page.locator("label", has=rate).locator(".error")
    expect(wrong).to_contain_text("A number is expected.")
    expect(sentence(page)).to_have_text("One field cannot be accepted.")
    expect(page.locator("figure")).to_have_count(0)
    rate.fill("0")
    expect(wrong).to_contain_text("minimum 1e-06")
    rate.fill("5")
    expect(wrong).to_be_empty()
    expect(sentence(page)).to_contain_text("USD an hour")


def test_figures_can_be_taken_away(opened: Open, tmp_path: Path):
    page = opened()
    picture = page.locator("#picture-pareto")
    expect_drawn(picture)
    saved = {}
    for kind in ("CSV", "JSON", "SVG", "PNG"):
        with page.expect_download() as download:
            picture.get_by_role("button", name=kind).click()
        saved[kind] = tmp_path / download.value.suggested_filename
        download.value.save_as(saved[kind])
    rows = list(csv.DictReader(saved["CSV"].read_text().splitlines()))
    items = json.loads(saved["JSON"].read_text())
    assert rows == [{k: "" if v is None else str(v) for k, v in item.items()} for item in items]
    assert {"27.52", "31.648"} <= {row["cost_per_hour"] for row in rows}
    assert saved["SVG"].read_text().startswith("<svg")
    assert saved["PNG"].read_bytes().startswith(b"\x89PNG")


def test_what_draws_is_fetched_once_and_only_by_pages_with_pictures(opened: Open):
    for path, wanted in (("", 1), ("terminology", 0)):
        page = opened(path)
        expect(page.locator("#answer .panel").first).to_be_visible()
        if wanted:
            expect_drawn(page.locator("#picture-pareto"))
        page.wait_for_load_state("networkidle")
        asked = page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
        assert sum("plotly.min.js" in name for name in asked) == wanted


def test_pictures_and_tables_are_made_as_they_are_neared_or_printed(opened: Open):
    page = opened(viewport={"width": 800, "height": 600})
    last = page.locator("#picture-roofline")
    expect(last).to_be_attached()
    expect_drawn(page.locator("#picture-pareto"))
    assert last.locator(".main-svg, tr").count() == 0
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    for picture in page.locator("figure").all():
        expect(picture.locator(".main-svg").first).to_be_visible()
        expect(picture.locator("tbody tr").first).to_be_attached()


def test_a_plan_is_kept_and_taken_to_economics_and_terminology(opened: Open):
    page = opened()
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("link", name="check a text against it").click()
    expect(page.locator("#answer")).to_contain_text("What the plan says")
    page.go_back()
    page.get_by_role("button", name="Keep this plan").click()
    page.get_by_role("link", name="compare it with an API").click()
    expect(sentence(page)).to_contain_text("Self-hosting is")
    expect_drawn(page.locator("#picture-self_host_vs_api"))


def test_break_even_follows_its_inputs(opened: Open):
    page = opened("break-even")
    expect(sentence(page)).to_contain_text("after 1,461,125,799 calls, or 10.4 months")
    for picture in ("break_even", "break_even_over_time", "tornado"):
        expect_drawn(page.locator(f"#picture-{picture}"))
    page.get_by_label("Price of a call").fill("0.003")
    expect(sentence(page)).to_contain_text("It does not pay")


def test_predictions_stand_beside_measurements_with_their_intervals(opened: Open):
    page = opened("accuracy")
    picture = page.locator("#picture-accuracy")
    expect_drawn(picture)
    expect(picture.locator("figcaption")).to_contain_text("lie within their interval")
    rows = predictions()["predictions"]
    expect(picture.locator(".errorbar")).to_have_count(len(rows))
    expect(sentence(page)).to_contain_text(f"{len(rows)} public benchmarks")
    picture.get_by_text("The figures as a table").click()
    expect(picture.locator("tbody tr")).to_have_count(len(rows))


def test_a_question_is_answered_by_keyboard_and_its_advice_shown(opened: Open):
    page = opened("terminology")
    page.get_by_label("Text to check").fill("Decode is memory-bound and it is not slow.")
    expect(page.locator(".prose")).to_have_text("Decode is memory-bound and it is not slow.")
    expect(page.locator("mark")).to_have_text("memory-bound")
    page.get_by_role("radio", name="Capacity If").focus()
    page.keyboard.press("Space")
    expect(sentence(page)).to_contain_text("0 open questions, 1 resolved")
    expect(page.locator("#finding-0")).to_contain_text("Capacity: ")
    page.wait_for_url("**answer-0=capacity**")
    again = opened("terminology?" + urlsplit(page.url).query)
    expect(again.get_by_role("radio", name="Capacity If")).to_be_checked()
    again.get_by_label("Text to check").fill("Decode is memory-bound.")
    expect(sentence(again)).to_contain_text("1 open question, 0 resolved")


@pytest.mark.parametrize("path", PAGES)
def test_pages_are_accessible_light_and_dark_and_fit_a_phone(opened: Open, path: str):
    page = opened(path, viewport={"width": 320, "height": 640})
    expect(page.locator("#answer .panel").first).to_be_visible()
    if path != "terminology":
        for picture in page.locator("figure").all():
            expect_drawn(picture)
        assert page.evaluate(CUT_OFF) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page)
        violated = [each["id"] for each in found.response["violations"]]
        assert violated == [], found.generate_report()


def test_where_keys_are_required_a_page_answers_with_one_alone(opened: Open, database_file: str):
    for app in running_app(
        f"sqlite:///{database_file}", authentication="required", api_key_pepper="p"
    ):
        key = Keys(app.extensions["advisor-database"], "p").create("reader", "read")
        with served(app) as address:
            page = opened(base=f"{address}/explorer/", refused=True)
            expect(page.locator("#failure")).to_contain_text("Send an API key")
            page.get_by_label("A key of scope").fill(key)
            page.get_by_role("button", name="Use this key").click()
            expect(sentence(page)).to_contain_text("USD an hour")
            assert "Authorization: Bearer $ADVISOR_API_KEY" in command(page, "plan_request")
            assert key not in page.url + page.locator("#page").inner_html()
            assert page.evaluate("Object.keys({...localStorage, ...sessionStorage}).length") == 0
            page.get_by_role("button", name="Keep this plan").click()
            expect(page.locator("#kept")).to_contain_text("scope 'write'")
