"""What in a profile looks like a well-known mistake: magnitudes of hardware, formats of models.

Of hardware, three are common: a data sheet's TFLOPS with sparsity (twice the dense figure), a link
counted in both directions (twice one), and the name plate's gigabytes for what the device reports.
Nothing is refused for it: a device that is not known here may truly have such figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.core.hardware import HardwareProfile
from advisor.core.units import plain

Finding = dict[str, str]
Warnings = list[Finding]


@dataclass(frozen=True)
class DataSheet:
    """What is published of a device: dense 16-bit and FP8 peaks [TFLOP/s], link in one direction
    [GB/s, 0: not known], memory on the name plate, and how much of it the device reports [GiB]."""

    words: tuple[str, ...]
    vendor: str
    memory_bandwidth_gb_s: float
    dense_16_bit: float
    dense_8_bit: float
    link_gb_s: float
    plate_gb: float
    reported_gib: float

    def dense(self, arithmetic: str) -> float:
        """Dense peak [TFLOP/s] in bf16, fp16 or fp8."""
        return self.dense_8_bit if arithmetic == "fp8" else self.dense_16_bit


# Vendors' data sheets; reported memory as vendors' tools and engines' start-up logs print it.
DATA_SHEETS = (
    DataSheet(("a100", "40"), "nvidia", 1555, 312, 624, 300, 40, 39.4),
    DataSheet(("a100", "80"), "nvidia", 2039, 312, 624, 300, 80, 79.2),
    DataSheet(("h100", "pcie"), "nvidia", 2000, 756, 1513, 0, 80, 79.2),
    DataSheet(("h100", "nvl"), "nvidia", 3900, 835, 1670, 300, 94, 93.1),
    DataSheet(("h100",), "nvidia", 3350, 989.4, 1978.9, 450, 80, 79.2),
    DataSheet(("h200",), "nvidia", 4800, 989.4, 1978.9, 450, 141, 139.8),
    DataSheet(("gb200",), "nvidia", 8000, 2500, 5000, 900, 186, 184),
    DataSheet(("b200",), "nvidia", 8000, 2250, 4500, 900, 180, 178.4),
    DataSheet(("b300",), "nvidia", 8000, 2250, 4500, 900, 288, 268),
    DataSheet(("l40s",), "nvidia", 864, 362, 733, 0, 48, 44.4),
    DataSheet(("l40",), "nvidia", 864, 181, 362, 0, 48, 44.4),
    DataSheet(("l4",), "nvidia", 300, 121, 242, 0, 24, 22.0),
    DataSheet(("mi300x",), "amd", 5300, 1307.4, 2614.9, 448, 192, 191.7),
    DataSheet(("mi325x",), "amd", 6000, 1307.4, 2614.9, 448, 256, 255),
    DataSheet(("mi355x",), "amd", 8000, 2500, 5000, 537, 288, 287),
)
SAME = 0.02
"""Two figures of one device differ by less than this between sources."""
MIXED_RATIO = 3.5
"""FP8 over 16 bits is 2 on every device made; 4 means that only one of them is dense."""


def suspicions(profile: HardwareProfile) -> Warnings:
    """Warnings (`code`, `detail`) about figures that are probably not what the field means."""
    sheet = _data_sheet(profile)
    return [*_sparse(profile, sheet), *_both_directions(profile, sheet), *_plate(profile, sheet)]


FORMATS_IN_NAMES = frozenset(
    ("fp8", "nvfp4", "mxfp4", "fp4", "awq", "gptq", "int8", "int4", "w8a8", "w4a16", "bnb")
)
"""How names of checkpoints tell that they are quantized."""


def model_warnings(
    name: str, weights_precision: str, notes: Sequence[str] = (), others: Sequence[str] = ()
) -> Warnings:
    """Warnings about a model whose name tells of a quantization that its config does not, about
    parts of its checkpoint that are counted otherwise than they are stored (`notes`), and about
    `others` than the text part."""
    found = [_found("partly_quantized", note) for note in notes]
    if others:
        detail = (
            f"Only the text part is counted, not {', '.join(others)}: serving images or sound "
            "takes more memory for weights and activations."
        )
        found.append(_found("text_part_only", detail))
    told = FORMATS_IN_NAMES & set(re.split("[^a-z0-9]+", name.lower()))
    if told and weights_precision in ("bf16", "fp16", "fp32"):
        detail = (
            f"The name says {min(told)}, the config no quantization: {weights_precision} is "
            "counted. Give the hf_quant_config.json beside the config as hf_quant_config."
        )
        found.append(_found("name_without_quantization", detail))
    return found


def price_warnings(profile: HardwareProfile) -> Warnings:
    """Warnings about a price that is missing, or whose date is."""
    if profile.price is None:
        return [_found("no_price", "There is no price: costs are null.")]
    if profile.price.as_of is None:
        return [_found("undated_price", "The price has no date: it may be old.")]
    return []


def _data_sheet(profile: HardwareProfile) -> DataSheet | None:
    """The device that this seems to be: by name, else by vendor and memory bandwidth."""
    vendor, words = profile.vendor.lower(), set(re.split("[-._]|gb", profile.name))
    sheets = [sheet for sheet in DATA_SHEETS if sheet.vendor == vendor]
    named = [s for s in sheets if words.issuperset(s.words)]
    fast = [s for s in sheets if _same(profile.memory_bandwidth_gb_s, s.memory_bandwidth_gb_s)]
    return next(iter(named or fast), None)


def _sparse(profile: HardwareProfile, sheet: DataSheet | None) -> Iterator[Finding]:
    tflops = profile.dense_tflops
    for arithmetic in ("bf16", "fp16", "fp8"):
        given, dense = tflops.get(arithmetic, 0), sheet.dense(arithmetic) if sheet else 0
        if _same(given, 2 * dense):
            yield _found(
                "suspect_sparse_tflops",
                f"dense_tflops.{arithmetic} is {plain(given)}, twice the dense {plain(dense)} of "
                "this device: probably the figure with structured sparsity.",
            )
    sixteen = max(tflops.get("bf16", 0), tflops.get("fp16", 0))
    if sixteen and tflops.get("fp8", 0) > MIXED_RATIO * sixteen:
        yield _found(
            "suspect_sparse_tflops",
            f"dense_tflops.fp8 is {tflops['fp8'] / sixteen:.1f} times the 16-bit figure, where 2 "
            "is usual: probably the figure with structured sparsity.",
        )


def _both_directions(profile: HardwareProfile, sheet: DataSheet | None) -> Iterator[Finding]:
    link = profile.interconnect
    if link is None or sheet is None or link.kind not in ("nvlink", "infinity_fabric"):
        return
    given = link.bandwidth_gb_s_per_direction
    if _same(given, 2 * sheet.link_gb_s):
        yield _found(
            "suspect_both_directions",
            f"interconnect.bandwidth_gb_s_per_direction is {plain(given)}, twice the "
            f"{plain(sheet.link_gb_s)} of this device in one direction: probably both added up.",
        )


def _plate(profile: HardwareProfile, sheet: DataSheet | None) -> Iterator[Finding]:
    if profile.memory_gib not in {s.plate_gb for s in DATA_SHEETS}:
        return
    known = sheet is not None and sheet.plate_gb == profile.memory_gib
    reported = f"about {plain(sheet.reported_gib)} GiB" if sheet and known else "less"
    yield _found(
        "suspect_gb_for_gib",
        f"memory_gib is {plain(profile.memory_gib)}, a capacity as name plates print it in GB; "
        f"such devices report {reported} as usable.",
    )


def _same(given: float, known: float) -> bool:
    """Whether two figures of a device are one, up to rounding between sources."""
    return known > 0 and abs(given - known) <= SAME * known


def _found(code: str, detail: str) -> Finding:
    return {"code": code, "detail": detail}
