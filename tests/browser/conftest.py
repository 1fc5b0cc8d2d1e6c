from __future__ import annotations

from tests.browser.chromium import browser
from tests.web.fixtures import _catalogued_sqlite, app, catalogued_url, client, shared_client

__all__ = ["_catalogued_sqlite", "app", "browser", "catalogued_url", "client", "shared_client"]
