"""Settings of the service, read from environment variables named `ADVISOR_...`.

The fields of `Settings` are the only list of settings there is: the variable's name, its default,
its permitted range and its documentation all come from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

PREFIX = "ADVISOR_"
DATABASE_SCHEMES = ("sqlite", "postgresql", "postgresql+psycopg")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
AUTHENTICATION = ("auto", "required", "off")
EXPLORER = ("auto", "on", "off")
STORAGE_SCHEMES = ("memory://", "redis://", "rediss://", "redis+unix://")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class BadSetting(Exception):
    """An environment variable holds a value the service cannot run with; the text names it."""

    def __init__(self, variable: str, problem: str) -> None:
        super().__init__(f"{variable}: {problem}")
        self.variable = variable


def _integer(minimum: int, maximum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if not minimum <= value <= maximum:
            raise ValueError(f"{value} is not between {minimum} and {maximum}")
        return value

    return parse


def _text(text: str) -> str:
    return text


def _log_level(text: str) -> str:
    if text.upper() not in LOG_LEVELS:
        raise ValueError(f"{text!r} is not one of {', '.join(LOG_LEVELS)}")
    return text.upper()


def _authentication(text: str) -> str:
    if text not in AUTHENTICATION:
        raise ValueError(f"{text!r} is not one of {', '.join(AUTHENTICATION)}")
    return text


def _explorer(text: str) -> str:
    if text not in EXPLORER:
        raise ValueError(f"{text!r} is not one of {', '.join(EXPLORER)}")
    return text


def _storage_url(text: str) -> str:
    if not text.startswith(STORAGE_SCHEMES):
        # It may hold a password too.
        raise ValueError(f"must begin with one of {', '.join(STORAGE_SCHEMES)}")
    return text


def _origins(text: str) -> str:
    origins = [each.strip() for each in text.split(",")]
    for origin in origins:
        if not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?", origin):
            raise ValueError(f"{origin!r} is no origin such as https://tools.example.com")
    return ",".join(origins)


def _web_address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+(/\S*)?", text):
        raise ValueError(f"{text!r} is no http:// or https:// address")
    return text


def _database_url(text: str) -> str:
    # The URL may hold a password, so the message repeats no part of it.
    scheme, separator, _ = text.partition("://")
    if not separator or scheme not in DATABASE_SCHEMES:
        raise ValueError(f"must begin with one of {', '.join(s + '://' for s in DATABASE_SCHEMES)}")
    return text


def _setting(default: Any, parse: Callable[[str], Any], doc: str, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"parse": parse, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an operator may set; every field is the variable `ADVISOR_` + its name in capitals."""

    data_dir: Path = _setting(
        Path("data"), Path, "Directory of the embedded SQLite database; made when it is missing."
    )
    database_url: str = _setting(
        "",
        _database_url,
        "Database as an SQLAlchemy URL, sqlite:// or postgresql://. "
        "Unset: the SQLite file advisor.sqlite3 in ADVISOR_DATA_DIR.",
        secret=True,
    )
    database_pool_size: int = _setting(
        16,
        _integer(1, 1000),
        "Connections that each worker process may hold to PostgreSQL.",
    )
    database_timeout_ms: int = _setting(
        2000,
        _integer(100, 600_000),
        "Longest wait for a connection to the database, and again for one statement [ms]; "
        "past it the answer is 503.",
    )
    host: str = _setting("127.0.0.1", _text, "Address to listen on.")
    port: int = _setting(8000, _integer(1, 65_535), "TCP port to listen on.")
    workers: int = _setting(2, _integer(1, 256), "Worker processes; about one per core.")
    threads: int = _setting(
        32, _integer(1, 1024), "Threads, so requests served at once, in each worker process."
    )
    max_body_bytes: int = _setting(
        1_048_576,
        _integer(1024, 1_073_741_824),
        "Largest request body accepted [bytes]; a larger one is answered 413.",
    )
    authentication: str = _setting(
        "auto",
        _authentication,
        "Whether requests need an API key: required, off, or auto, which is off for an SQLite "
        "database served on a loopback address and required for anything else.",
    )
    api_key_pepper: str = _setting(
        "",
        _text,
        "Secret that goes into the stored digests of API keys; keys made under another one do "
        "not work.",
        secret=True,
    )
    idempotency_hours: int = _setting(
        24,
        _integer(1, 8760),
        "Hours that the answer to a POST with an Idempotency-Key is kept, to be given again.",
    )
    rate_limit_per_minute: int = _setting(
        0,
        _integer(0, 60_000),
        "Requests that each API key, or each address without one, may send in a minute; past it "
        "the answer is 429. 0: no limit.",
    )
    rate_limit_storage: str = _setting(
        "memory://",
        _storage_url,
        "Where requests are counted: memory:// (each worker process by itself), or redis:// or "
        "rediss:// (Redis or Valkey, for all together).",
        secret=True,
    )
    trusted_proxies: int = _setting(
        0,
        _integer(0, 10),
        "Proxies in front of the service, whose X-Forwarded-For tells the address of a client.",
    )
    cors_origins: str = _setting(
        "",
        _origins,
        "Origins, separated by commas, whose pages may use the service in a browser, such as "
        "https://tools.example.com.",
    )
    terminology_rules: str = _setting(
        "",
        _text,
        "TOML file with a team's own rules and words for the terminology checker, and those to "
        "leave out: docs/terminology.md.",
    )
    sweep_items: int = _setting(
        10_000,
        _integer(1, 1_000_000),
        "Most questions of one sweep; a larger one is refused.",
    )
    worker_metrics_port: int = _setting(
        0,
        _integer(0, 65_535),
        "TCP port where advisor worker serves its metrics, on ADVISOR_HOST. 0: none.",
    )
    explorer: str = _setting(
        "auto",
        _explorer,
        "The pages at /explorer/: auto (where the extra explorer is installed), on, or off.",
    )
    tracing_endpoint: str = _setting(
        "",
        _web_address,
        "OTLP/HTTP address of an OpenTelemetry collector, such as "
        "http://collector:4318/v1/traces. Unset: no traces are made.",
    )
    log_level: str = _setting(
        "INFO", _log_level, f"Least severe log lines that are written: {', '.join(LOG_LEVELS)}."
    )

    def __post_init__(self) -> None:
        if not self.database_url:
            # A frozen dataclass offers no other way to derive one default from another field.
            url = f"sqlite:///{self.data_dir / 'advisor.sqlite3'}"
            object.__setattr__(self, "database_url", url)

    @property
    def requires_keys(self) -> bool:
        """Whether requests need an API key."""
        embedded = self.host in LOOPBACK and self.database_url.startswith("sqlite")
        return self.authentication == "required" or (self.authentication == "auto" and not embedded)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read the settings from `environment` (default: the process's own).

        A variable that is unset or empty takes its default. Raises `BadSetting` for a value out of
        its domain and for an `ADVISOR_...` variable that is no setting (most often a typing error).
        """
        given = {
            name: value
            for name, value in (os.environ if environment is None else environment).items()
            if name.startswith(PREFIX) and value
        }
        known = {variable_name(f): f for f in fields(cls)}
        for name in sorted(given.keys() - known.keys()):
            # Passed over, a misspelt ADVISOR_DATABASE_URL would start on an empty database.
            nearest = get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            raise BadSetting(name, f"there is no such setting{hint}")
        return cls(**{known[name].name: _parse(name, known[name], given[name]) for name in given})


def variable_name(setting: Field[Any]) -> str:
    """The environment variable that holds a field of `Settings`."""
    return PREFIX + setting.name.upper()


def described() -> Iterator[tuple[str, str]]:
    """Each setting's variable with its documentation, in the order of `Settings`."""
    return ((variable_name(f), f.metadata["doc"]) for f in fields(Settings))


def _parse(variable: str, setting: Field[Any], text: str) -> Any:
    try:
        return setting.metadata["parse"](text)
    except ValueError as error:
        raise BadSetting(variable, str(error)) from None
