"""Use cases: load, compute, save. Each opens its own transaction; none knows of HTTP."""
