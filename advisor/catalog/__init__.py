"""Accelerators, models and prices known from the start, as data files with a source per figure.

`hardware/<vendor>.json` lists `accelerators` (one entry each, in the API's form) and `left_out`:
those whose public figures do not suffice, with the reason. `models/<name>.json` is one model:
the keys of its `config.json` that shape it, and its published parameter count.

**Memory.** `memory_gib` is what devices report in public start-up logs, the lowest where several
were seen. Where none was seen it is the name plate, counted as GiB, less a haircut, and
`uncertain_fields` names it. The haircut keeps the lowest share seen where both are known: 0.985 of
HBM (A100 40 GB: 39.39 of 40) and of a total that the driver lists (L40S: 44.3 of 44.99), 0.918 of
GDDR with ECC (L4: 22.03 of 24).

**Arithmetic** is dense, never with sparsity; a format that a device does not have, or whose figure
was not found, has no key. **Links** are one direction, per accelerator over all its links; an
optional bridge is not counted. Where a source gives a range of accelerators in a node, the largest.

**Prices** are one named on-demand offer each: the smallest instance of AWS in us-east-1, else of
Azure, Google or Oracle, else of a smaller provider, at its latest date; the instance's price over
its accelerators. Spot, reserved and managed-endpoint prices, other offers and the prices of APIs
are in `prices/`, which `prices.py` describes; plans do not use them.
"""

from __future__ import annotations
