from __future__ import annotations

from tests.web.fixtures import _catalogued_sqlite, shared_client

__all__ = ["_catalogued_sqlite", "shared_client"]
