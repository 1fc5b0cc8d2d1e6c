"""The WSGI application, for any server: `advisor.wsgi:app`."""

from __future__ import annotations

from advisor.core.terminology.check import check_all
from advisor.web.app import create_app

app = create_app()
# A first check compiles patterns, 0.2 s: done here, no worker does it again.
check_all("Decode is memory-bound.", app.extensions["advisor-vocabulary"])
