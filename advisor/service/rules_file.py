"""The file with a team's own rules for the terminology checker."""

from __future__ import annotations

import tomllib
from pathlib import Path

from advisor.config import BadSetting
from advisor.core.terminology.vocabulary import Vocabulary, extended, standard

VARIABLE = "ADVISOR_TERMINOLOGY_RULES"


def rules_of(path: str, source: str = VARIABLE) -> Vocabulary:
    """The shipped rules with those of a file added; without a path, the shipped ones.

    `source` is what named the file. Raises `BadSetting` for a file that cannot be read or says what
    is no rule.
    """
    if not path:
        return standard()
    try:
        return extended(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise BadSetting(source, f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # TOML that does not parse is a ValueError too; the others are fields that are missing, not
        # known or of another type.
        raise BadSetting(source, f"{path}: {error}") from None
