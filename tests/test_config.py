from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from advisor.config import BadSetting, Settings, described


def test_without_variables_the_service_uses_a_database_file_in_the_data_directory():
    settings = Settings.from_environment({"ADVISOR_DATA_DIR": "/var/lib/advisor"})
    assert settings.database_url == "sqlite:////var/lib/advisor/advisor.sqlite3"
    assert Settings.from_environment({}).database_url == "sqlite:///data/advisor.sqlite3"


def test_a_given_database_is_used_whatever_the_data_directory():
    url = "postgresql://advisor@database/advisor"
    given = {"ADVISOR_DATABASE_URL": url, "ADVISOR_DATA_DIR": "elsewhere"}
    settings = Settings.from_environment(given)
    assert settings.database_url == url
    assert settings.data_dir == Path("elsewhere")


def test_an_empty_variable_counts_as_unset():
    assert Settings.from_environment({"ADVISOR_PORT": ""}) == Settings()


def test_variables_of_other_programs_are_ignored():
    assert Settings.from_environment({"PORT": "1", "HOME": "/"}) == Settings()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ADVISOR_PORT", "0"),
        ("ADVISOR_PORT", "65536"),
        ("ADVISOR_PORT", "http"),
        ("ADVISOR_WORKERS", "1.5"),
        ("ADVISOR_THREADS", "-1"),
        ("ADVISOR_MAX_BODY_BYTES", "1MiB"),
        ("ADVISOR_LOG_LEVEL", "chatty"),
        ("ADVISOR_AUTHENTICATION", "on"),
        ("ADVISOR_TRACING_ENDPOINT", "collector:4318"),
        ("ADVISOR_CORS_ORIGINS", "*"),
        ("ADVISOR_CORS_ORIGINS", "https://a.example,https://b.example/"),
        ("ADVISOR_RATE_LIMIT_STORAGE", "memcached://localhost"),
        ("ADVISOR_IDEMPOTENCY_HOURS", "0"),
        ("ADVISOR_DATABASE_URL", "mysql://localhost/advisor"),
        ("ADVISOR_DATABASE_URL", "advisor.sqlite3"),
        ("ADVISOR_DATABASE_TIMEOUT_MS", "nan"),
    ],
)
def test_a_value_out_of_its_domain_is_refused_naming_the_variable(variable: str, value: str):
    with pytest.raises(BadSetting, match=rf"^{variable}: "):
        Settings.from_environment({variable: value})


def test_a_misspelt_variable_is_refused_with_the_nearest_setting():
    with pytest.raises(BadSetting, match="did you mean ADVISOR_DATABASE_URL"):
        Settings.from_environment({"ADVISOR_DATABSE_URL": "postgresql://localhost/advisor"})


def test_a_password_in_the_database_url_is_neither_shown_nor_put_into_an_error():
    given = {"ADVISOR_DATABASE_URL": "postgresql://advisor:hunter2@localhost/advisor"}
    assert "hunter2" not in repr(Settings.from_environment(given))
    with pytest.raises(BadSetting) as refused:
        Settings.from_environment({"ADVISOR_DATABASE_URL": "oracle://advisor:hunter2@localhost"})
    assert "hunter2" not in str(refused.value)


def test_the_log_level_may_be_in_lower_case():
    assert Settings.from_environment({"ADVISOR_LOG_LEVEL": "debug"}).log_level == "DEBUG"


def test_every_setting_has_its_documentation():
    documented = dict(described())
    assert len(documented) == len(fields(Settings))
    assert all(text.endswith(".") for text in documented.values())


@pytest.mark.parametrize(
    ("given", "required"),
    [
        ({}, False),
        ({"ADVISOR_HOST": "::1"}, False),
        ({"ADVISOR_HOST": "0.0.0.0"}, True),
        ({"ADVISOR_HOST": "10.0.0.1"}, True),
        ({"ADVISOR_DATABASE_URL": "postgresql://localhost/advisor"}, True),
        ({"ADVISOR_HOST": "0.0.0.0", "ADVISOR_AUTHENTICATION": "off"}, False),
        ({"ADVISOR_AUTHENTICATION": "required"}, True),
    ],
)
def test_keys_are_required_wherever_others_could_ask(given: dict[str, str], required: bool):
    assert Settings.from_environment(given).requires_keys is required


def test_a_pepper_is_not_shown():
    assert "hunter2" not in repr(Settings.from_environment({"ADVISOR_API_KEY_PEPPER": "hunter2"}))
