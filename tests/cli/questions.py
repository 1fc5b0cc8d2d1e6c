"""Command lines that several tests ask."""

from __future__ import annotations

LOAD = ("--rate", "4", "--input-tokens", "1000", "--output-tokens", "250")
ON_H100 = ("plan", "--model", "meta-llama-3.1-70b", "--hardware", "h100-sxm-80gb")
QUESTION = (*ON_H100, *LOAD, "--weights", "fp8", "--kv-cache", "fp8")
