"""Comments in a text that switch rules off: for one line, for the next, or up to where they end."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

EVERY = "*"
"""Stands for all rules."""
_DIRECTIVE = re.compile(
    r"advisor-(?P<kind>disable-next-line|disable-line|disable|enable)(?![\w-])"
    r"[:= \t]{0,4}(?P<rules>[a-z0-9-]{0,60}(?:,[ \t]{0,4}[a-z0-9-]{1,60}){0,20})"
)
_COMMENT = re.compile(r"(?:<!--|#|//|/\*|\*|--|;|%|\.\.)[ \t]{0,8}$")
"""What stands before a directive: the opening of a comment in one of the languages read."""


class Directives:
    """Where the comments of a text, whatever its format, switch rules off. Lines count from 1."""

    def __init__(self, text: str) -> None:
        self._lines: dict[int, set[str]] = defaultdict(set)
        self._switches: list[tuple[int, bool, set[str]]] = []
        self._by_rule: dict[str, tuple[list[int], list[bool]]] = {}
        self._ends: list[int] = []
        self._starts: list[int] = []
        line, position = 1, 0
        for found in _DIRECTIVE.finditer(text):
            line += text.count("\n", position, found.start())
            position = found.start()
            if _COMMENT.search(text, max(0, position - 12), position):
                self._add(found["kind"], line, found["rules"])
                self._starts.append(position)
                self._ends.append(found.end())

    def hold(self, offset: int) -> bool:
        """Whether the code point belongs to a directive, which names rules and claims nothing."""
        before = bisect_right(self._starts, offset)
        return bool(before) and offset < self._ends[before - 1]

    def cover(self, rule: str, line: int) -> bool:
        """Whether `rule` is switched off on a line."""
        if self._lines and self._lines.get(line, set()) & {rule, EVERY}:
            return True
        at, off = self._states(rule)
        before = bisect_right(at, line)
        return bool(before) and off[before - 1]

    def _add(self, kind: str, line: int, rules: str) -> None:
        # The two hyphens that end a comment of HTML are no name of a rule.
        named = {rule.strip() for rule in rules.split(",") if rule.strip(" -")} or {EVERY}
        if kind.endswith("line"):
            self._lines[line + (kind == "disable-next-line")] |= named
        else:
            self._switches.append((line, kind == "disable", named))

    def _states(self, rule: str) -> tuple[list[int], list[bool]]:
        """The lines that switch this rule, and whether each switches it off."""
        if rule not in self._by_rule:
            those = [each for each in self._switches if each[2] & {rule, EVERY}]
            self._by_rule[rule] = [at for at, _, _ in those], [off for _, off, _ in those]
        return self._by_rule[rule]
