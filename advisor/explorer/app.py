"""The explorer as a Dash application."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from dash import ALL, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update
from dash.exceptions import PreventUpdate
from flask import Flask, request

from advisor.core.errors import InvalidInput
from advisor.explorer import accuracy_page, economics_pages, plan_page, terminology_page
from advisor.explorer.attributes import attributes
from advisor.explorer.fields import Field
from advisor.explorer.forms import form
from advisor.explorer.pages import Page, Question, Services, Shown
from advisor.explorer.parts import alert, pictures
from advisor.explorer.requests import body_of, placed, text_of
from advisor.explorer.state import Values, fields_of, query_of, values_of
from advisor.service.profiles import HARDWARE, MODELS, ProfileKind

PREFIX = "/explorer/"
PAGES = (
    plan_page.PAGE,
    economics_pages.BREAK_EVEN,
    economics_pages.SELF_HOST,
    terminology_page.PAGE,
    accuracy_page.PAGE,
)
PAGE_SIZE = 200
MOST_NAMES = 1000
"""Names that a page offers, so that it opens as fast with a hundred thousand profiles."""
INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
{%favicon%}
{%css%}
</head>
<body>
<noscript>This page needs JavaScript. The service itself does not: see
<a href="/docs">its documentation</a>.</noscript>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>
"""


class Failed(Exception):
    """A page could not be answered, for a reason that is not in what was asked: `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


def make_explorer(services: Services) -> Dash:
    """The explorer, an application of its own; `Failed` comes out of it as it was raised."""
    server: Any = Flask("advisor.explorer", static_folder=None)
    server.config["PROPAGATE_EXCEPTIONS"] = True
    dash = Dash(
        "advisor.explorer", server=server,
        routes_pathname_prefix="/", requests_pathname_prefix=PREFIX, index_string=INDEX,
        title="Inference Advisor explorer", update_title="", add_log_handler=False,
        suppress_callback_exceptions=True, enable_mcp=False,
    )  # fmt: skip
    dash.layout = _layout(services)
    _register(dash, services)
    # Dash sets itself up in its first request, and answers others meanwhile with 404.
    server.test_client().get("/")
    return dash


def _layout(services: Services) -> html.Div:
    key = html.Details(
        [
            html.Summary("API key"),
            html.Label(["A key of scope read shows; one of scope write also keeps plans. It stays "
                        "in this page and is forgotten with it.",
                        dcc.Input(id="key", type="password", autoComplete="off",
                                  className="text")]),
            html.Button("Use this key", id="use-key", type="button"),
        ],
        open=True, className="key", hidden=not services.needs_key,
    )  # fmt: skip
    return html.Div(
        [dcc.Location(id="address", refresh=False), dcc.Store(id="query"), dcc.Store(id="shown"),
         html.A("To the answer", href="#answer", className="skip"), html.Header(id="header"), key,
         html.Div(id="failure", role="alert"),
         html.P("This is too long for an address: a link to this page does not show it.",
                id="too-long", hidden=True), html.Main(id="page")],
    )  # fmt: skip


def _register(dash: Dash, services: Services) -> None:
    dash.callback(
        Output("header", "children"), Output("page", "children"),
        Output("query", "data"), Input("address", "pathname"), Input("use-key", "n_clicks"),
        State("address", "search"),
    )(_safe(lambda path, _, search: _opened(services, path, search or "")))  # fmt: skip
    dash.callback(
        Output("answer", "children"), Output({"error": ALL}, "children"),
        Output("below", "children"), Output("sentence", "children"),
        Output("query", "data", allow_duplicate=True),
        Input({"field": ALL}, "value"), Input({"answer": ALL}, "value"),
        State("address", "pathname"), State("query", "data"), prevent_initial_call=True,
    )(_safe(lambda _, __, path, query: _changed(services, path, query)))  # fmt: skip
    # Words first: the pictures follow them.
    dash.callback(
        Output("pictures", "children"), Input("query", "data"), State("address", "pathname"),
        prevent_initial_call=True,
    )(_safe(lambda query, path: _pictured(services, path, query)))  # fmt: skip
    dash.clientside_callback(
        ClientsideFunction("explorer", "remember"),
        Output("shown", "data"), Input("query", "data"), prevent_initial_call=True,
    )  # fmt: skip


def _safe(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A callback whose own failures are told apart from requests that Dash cannot read."""

    @wraps(callback)
    def wrapper(*args: Any) -> Any:
        try:
            return callback(*args)
        except PreventUpdate:
            raise
        except Exception as error:
            raise Failed(error) from error

    return wrapper


def _opened(services: Services, path: str, search: str) -> tuple[Any, Any, Any]:
    """A page as its address has it."""
    page = _page_at(path)
    if page is None:
        return _header(None), alert("There is no such page here."), no_update
    values = values_of(page.groups, search)
    choices = {"models": _names(services, MODELS), "hardware": _names(services, HARDWARE)}
    shown, errors = _answered(services, page, values)
    filled = form(page.groups, values, choices, errors)
    content = [
        html.Div([html.H1(page.title), html.P(page.lead, className="lead")], className="head"),
        html.P(shown.sentence, id="sentence", role="status"),
        filled,
        html.Div([html.Div(shown.parts, id="answer"),
                  *([] if page.picture is None else [html.Div(id="pictures")]),
                  html.Div(shown.below, id="below")]),
    ]  # fmt: skip
    return _header(page), content, query_of(values)


def _changed(services: Services, path: str, before: str) -> tuple[Any, ...]:
    """The answer to a form that has changed."""
    page = _page_at(path)
    if page is None:
        raise PreventUpdate
    values = _given(page)
    query = query_of(values)
    if query == before:
        # Controls that have only just been shown report themselves.
        raise PreventUpdate
    shown, errors = _answered(services, page, values)
    told = [errors.get(each["id"]["error"], "") for each in ctx.outputs_list[1]]
    return shown.parts, told, shown.below, shown.sentence, query


def _given(page: Page) -> Values:
    """The values of the controls on the page."""
    fields, answers = ctx.inputs_list
    found: Values = {}
    by_name = {each["id"]["field"]: each.get("value") for each in fields}
    for field in fields_of(page.groups):
        value = by_name.get(field.name)
        if field.many:
            found[field.name] = [str(one) for one in value] if isinstance(value, list) else []
        else:
            found[field.name] = "" if value is None else str(value)
    # Another text asks other questions. Controls that have only just been shown report themselves,
    # all at once.
    another = len(ctx.triggered) == 1 and ctx.triggered_id in (
        {"field": "text"},
        {"field": "format"},
    )
    for each in answers:
        if each.get("value") and not another:
            found[f"answer-{each['id']['answer']}"] = str(each["value"])
    return found


def _pictured(services: Services, path: str, query: str) -> list[Any]:
    """The pictures of what an address asks; none where it cannot be answered."""
    page = _page_at(path)
    if page is None or page.picture is None:
        raise PreventUpdate
    try:
        question = _question(services, page, values_of(page.groups, query))
        return pictures(page.picture(services, question))
    except InvalidInput:
        return []


def _question(services: Services, page: Page, values: Values) -> Question:
    body = body_of(fields_of(page.groups), values, services.parse)
    document = services.parse(text_of(body).encode())
    return Question(values, body, document, request.host_url.rstrip("/"))


def _answered(services: Services, page: Page, values: Values) -> tuple[Shown, dict[str, str]]:
    """The answer to the values of a form, or what is wrong with them, by field."""
    try:
        return page.ask(services, _question(services, page, values)), {}
    except InvalidInput as refused:
        return _refused(refused, fields_of(page.groups))


def _refused(refused: InvalidInput, fields: list[Field]) -> tuple[Shown, dict[str, str]]:
    """What is wrong, above the answer's place and for each field."""
    by_field, others = placed(refused.errors, fields)
    count = len(refused.errors)
    sentence = (
        "One field cannot be accepted." if count == 1 else f"{count} fields cannot be accepted."
    )
    told = {name: " ".join(each) for name, each in by_field.items()}
    named = [f"{field.label}: {told[field.name]}" for field in fields if field.name in told]
    return Shown(sentence, [alert("This keeps it from being answered:", [*named, *others])]), told


def _page_at(path: str) -> Page | None:
    place = path.removeprefix(PREFIX).strip("/")
    return next((page for page in PAGES if page.path == place), None)


def _header(current: Page | None) -> list[Any]:
    links = [
        html.A(page.title, href=f"{PREFIX}{page.path}",
               **attributes(**({"aria_current": "page"} if page is current else {})))
        for page in PAGES
    ]  # fmt: skip
    return [
        html.Strong("Inference Advisor"),
        html.Nav([*links, html.A("API", href="/docs")], **attributes(aria_label="Pages")),
    ]


def _names(services: Services, kind: ProfileKind) -> list[str]:
    """The first names of the profiles of a kind."""
    names: list[str] = []
    cursor: str | None = None
    while len(names) < MOST_NAMES:
        page, cursor = kind.page(services.database, PAGE_SIZE, cursor, {})
        names += [profile.name for profile in page]
        if cursor is None:
            break
    return names
