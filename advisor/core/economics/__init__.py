"""Economics of LLM inference: exact sums over money, never binary floating point."""
