"""Benchmarks that print ratios taken in one run: machines are noisy, ratios less so."""
