"""Pictures as data: what an answer shows, with the same figures as a table, and no renderer in it.

Each chart is one function from an answer to a `Chart`, or None where the answer has not what it
shows; nothing is computed a second time.
"""

from __future__ import annotations
