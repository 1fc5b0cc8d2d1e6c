"""Sweeps by workers of their own: a queue of jobs in the PostgreSQL database itself.

Nothing else here knows procrastinate, which keeps the queue. Its tables are in a schema of their
own, `advisor_jobs`, that a migration makes.
"""
