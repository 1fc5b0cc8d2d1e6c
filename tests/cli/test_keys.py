"""`advisor keys`."""

from __future__ import annotations

import re

import pytest

from tests.cli.conftest import Run

KEY = re.compile(r"advisor_[A-Za-z0-9_-]{43}\n")


def test_a_key_is_made_listed_rotated_and_revoked(advisor: Run, database_url: str):
    env = {"ADVISOR_DATABASE_URL": database_url}
    first = advisor("keys", "create", "ci", "--scope", "read", "--days", "30", **env)
    assert KEY.fullmatch(first.stdout)
    second = advisor("keys", "rotate", "ci", **env)
    assert KEY.fullmatch(second.stdout)
    assert second.stdout != first.stdout
    listed = advisor("keys", "list", **env).stdout
    assert listed.count("ci") == 2
    assert first.stdout.strip() not in listed
    assert advisor("keys", "revoke", "ci", **env).stdout == "2 keys of ci revoked.\n"


def test_a_name_has_one_key_at_a_time_unless_it_is_rotated(advisor: Run, sqlite_url: str):
    env = {"ADVISOR_DATABASE_URL": sqlite_url}
    for command in ("rotate", "revoke"):
        missing = advisor("keys", command, "ci", **env)
        assert missing.exit_code == 1
        assert "ci has no key that works" in missing.stderr
    assert advisor("keys", "create", "ci", **env).exit_code == 0
    again = advisor("keys", "create", "ci", **env)
    assert again.exit_code == 1
    assert "advisor keys rotate ci" in again.stderr
    assert advisor("keys", "revoke", "ci", **env).stdout == "1 key of ci revoked.\n"
    assert advisor("keys", "create", "ci", **env).exit_code == 0


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a" * 101, "ä"])
def test_a_name_that_cannot_be_one_is_refused(advisor: Run, sqlite_url: str, name: str):
    result = advisor("keys", "create", "--", name, ADVISOR_DATABASE_URL=sqlite_url)
    assert result.exit_code == 2


def test_keys_need_a_migrated_database(advisor: Run, unmigrated_sqlite_url: str):
    result = advisor("keys", "list", ADVISOR_DATABASE_URL=unmigrated_sqlite_url)
    assert result.exit_code == 1
    assert "advisor db upgrade" in result.stderr
