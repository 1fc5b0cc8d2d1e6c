"""The application factory."""

from __future__ import annotations

from flask import Flask

from advisor.config import Settings
from advisor.service.database import Database
from advisor.service.keys import Keys
from advisor.service.rules_file import rules_of
from advisor.web import (
    authentication,
    bulk,
    charts,
    compression,
    docs,
    economics,
    explorer,
    fleets,
    hardware_profiles,
    health,
    history,
    idempotency,
    model_profiles,
    observability,
    plans,
    prices,
    problems,
    rate_limits,
    security,
    sweeps,
    techniques,
    terminology,
    tracing,
)
from advisor.web.spec import make_api

RESOURCES = (
    plans.blp,
    charts.blp,
    techniques.blp,
    fleets.blp,
    sweeps.blp,
    hardware_profiles.blp,
    model_profiles.blp,
    bulk.blp,
    history.blp,
    economics.blp,
    prices.blp,
    terminology.blp,
    health.blp,
)


def create_app(settings: Settings | None = None) -> Flask:
    """The service as a WSGI application; without `settings`, by the environment.

    Connections to the database are made when a request first needs one.
    """
    settings = settings or Settings.from_environment()
    observability.configure_logging(settings.log_level)
    app = Flask("advisor", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body_bytes
    # Otherwise `//` in a path is answered by a redirect to whatever host the client has named.
    app.url_map.merge_slashes = False
    database = Database(
        settings.database_url,
        pool_size=settings.database_pool_size,
        timeout_ms=settings.database_timeout_ms,
    )
    keys = Keys(database, settings.api_key_pepper) if settings.requires_keys else None
    app.extensions["advisor-database"] = database
    app.extensions["advisor-vocabulary"] = rules_of(settings.terminology_rules)
    sweeps.register(app, database, settings.sweep_items)
    observability.register(app)
    tracing.register(app, settings.tracing_endpoint, database)
    compression.register(app)
    security.register(app, settings.cors_origins)
    authentication.identify_clients(app, keys)
    rate_limits.register(app, settings)
    authentication.authorise_clients(app)
    problems.register(app)
    app.url_map.converters["technique"] = techniques.TechniqueName
    idempotency.register(app, settings.idempotency_hours)
    api = make_api(app)
    for resource in RESOURCES:
        api.register_blueprint(resource)
    docs.register(app)
    explorer.register(app, settings.explorer)
    return app
