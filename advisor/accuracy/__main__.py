"""How far predictions are from measurements: `python -m advisor.accuracy` prints the page,
`--write` keeps it as docs/accuracy.md, the widths of intervals as the core's residuals.toml, and
predictions as predictions.csv.
`--refit` takes a step of the fit first (coefficients.toml, held_out.json), in some ten minutes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from advisor.accuracy.calibrate import fit, rewritten
from advisor.accuracy.held_out import refitted
from advisor.accuracy.intervals import as_toml, measured_cases
from advisor.accuracy.report import report
from advisor.accuracy.rows import rows

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Print the page, or write it and the widths; or fit anew."""
    if "--refit" in sys.argv[1:]:
        found = fit(rows())
        text = rewritten(found.improved())
        (_ROOT / "advisor" / "core" / "coefficients.toml").write_text(text, encoding="utf-8")
        text = json.dumps(refitted(found, rows()), indent=0, sort_keys=True)
        (_ROOT / "advisor" / "accuracy" / "held_out.json").write_text(text, encoding="utf-8")
        return
    page, widths, predicted = report(rows())
    if "--write" not in sys.argv[1:]:
        sys.stdout.write(page)
        return
    (_ROOT / "docs" / "accuracy.md").write_text(page, encoding="utf-8")
    (_ROOT / "advisor" / "accuracy" / "predictions.csv").write_text(predicted, encoding="utf-8")
    kept = as_toml(widths, measured_cases(rows()))
    (_ROOT / "advisor" / "core" / "residuals.toml").write_text(kept, encoding="utf-8")


if __name__ == "__main__":
    main()
