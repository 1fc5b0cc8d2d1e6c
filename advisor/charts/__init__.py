"""Pictures as data: what an answer shows, with the same figures as a table, and no renderer in it.

Each chart is one function from an answer to a `Chart`, or None where the answer has not what it
shows. Figures are those of the answer; what lies between them on a curve is computed by the core.
"""

from __future__ import annotations
