"""Number formats: what a weight or a cached value occupies, and which arithmetic computes with it.

Storage is not compute: INT4, NF4 and MXFP4 weights are unpacked to bf16 where the device has no
such arithmetic, and an FP8 KV cache does not make attention FP8.
"""

from __future__ import annotations

from collections.abc import Mapping

_PLAIN = ("bf16", "fp16", "fp32")

WEIGHT_BYTES: Mapping[str, float] = {
    "fp32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8_block": 1.0 + 4.0 / (128 * 128),  # one fp32 scale for each 128 x 128 block
    "int8": 1.0,
    "int4_awq": (4 + 20 / 128) / 8,  # groups of 128: a 16-bit scale and a 4-bit zero point
    "int4_gptq": (4 + 20 / 128) / 8,
    "int4_g64": (4 + 20 / 64) / 8,  # groups of 64: a 16-bit scale and a 4-bit zero point
    "int4_g32": 4.5 / 8,  # groups of 32: a 16-bit scale adds half a bit
    "int4_channel": 0.5,  # one scale for each output: some thousand weights
    "nf4": (4 + 32 / 64) / 8,  # bitsandbytes: a scale for each 64; engines expand it to 32 bits
    "mxfp4": 4.25 / 8,  # OCP MX: one 8-bit scale for each 32 values
    "nvfp4": 4.5 / 8,  # one fp8 scale for each 16 values
}
"""Bytes of a stored weight with its scales."""

KV_BYTES: Mapping[str, float] = {"bf16": 2.0, "fp16": 2.0, "fp8": 1.0, "int8": 1.0}
"""Bytes of one cached key or value element."""

_ARITHMETIC: Mapping[str, tuple[str, ...]] = {
    "fp32": ("tf32", "fp32"),
    "bf16": _PLAIN,
    "fp16": ("fp16", "bf16", "fp32"),
    "fp8": ("fp8", *_PLAIN),
    "fp8_block": ("fp8", *_PLAIN),
    "int8": ("int8", *_PLAIN),
    "int4_awq": _PLAIN,
    "int4_gptq": _PLAIN,
    "int4_g64": _PLAIN,
    "int4_g32": _PLAIN,
    "int4_channel": _PLAIN,
    "nf4": _PLAIN,
    "mxfp4": ("fp4", *_PLAIN),
    "nvfp4": ("fp4", *_PLAIN),
}
"""Arithmetic used for weights stored so, in order of preference."""


def compute_arithmetic(storage: str, dense_tflops: Mapping[str, float]) -> str | None:
    """The arithmetic in which a device multiplies weights stored as `storage`.

    The first that the device has; None when it has none of them. INT4 and NF4 weights are always
    unpacked (their kernels multiply in 16 bits).
    """
    return next((a for a in _ARITHMETIC[storage] if a in dense_tflops), None)


def preferred_arithmetic(storage: str) -> str:
    """The arithmetic that weights stored so would be multiplied in if the device had it."""
    return _ARITHMETIC[storage][0]


def kernel_kind(storage: str) -> str:
    """The kind of kernel that multiplies weights stored so; those that unpack INT4 are alike."""
    return "int4" if storage.startswith("int4_") else storage
