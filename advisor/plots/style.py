"""Colours, dashes and markers, told apart by who sees no colours too."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#4d4d4d", "#e69f00")
"""Okabe and Ito, Color Universal Design (2008), its yellow darkened to be seen on white."""

DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
HATCHES = ("", "//", "\\\\", "xx", "--", "||")

TEXT, MUTED, GRID, PAPER = "#1a1a1a", "#555555", "#dddddd", "#ffffff"

RC: Any = {
    "svg.hashsalt": "inference-advisor",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": TEXT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": TEXT,
    "xtick.color": TEXT,
    "ytick.color": TEXT,
    "hatch.linewidth": 0.6,
    "hatch.color": PAPER,
    "text.parse_math": False,
}
"""Text becomes paths, so that a viewer without the font shows the same."""
