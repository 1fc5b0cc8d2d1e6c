"""The WSGI application, for any server: `advisor.wsgi:app`."""

from __future__ import annotations

from advisor.web.app import create_app

app = create_app()
