"""Allocations."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "allocations",
        sa.Column("id", _key_text(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("objective", sa.String(100), nullable=False),
        sa.Column("status", _key_text(100), nullable=False),
        sa.Column("planner_version", sa.String(100), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
    )
    op.create_index(op.f("ix_allocations_status_id"), "allocations", ["status", "id"])


def downgrade() -> None:
    op.drop_table("allocations")


def _key_text(length: int) -> sa.String:
    """Text sorted by code point: SQLite's own order, PostgreSQL's collation "C"."""
    by_code_point = sa.String(length, collation="C")
    return sa.String(length).with_variant(by_code_point, "postgresql")
