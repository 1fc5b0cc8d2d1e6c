"""Sweeps and their chunks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sweeps",
        sa.Column("id", _key_text(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("digest", _key_text(64), nullable=True),
        sa.Column("planner_version", sa.String(100), nullable=False),
        sa.Column("coefficients_version", sa.String(100), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("profiles", sa.JSON(), nullable=False),
        sa.Column("re_evaluation_of", _key_text(32), nullable=True),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("taken", sa.Integer(), nullable=False),
        sa.Column("open", sa.Boolean(), nullable=False),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("total >= 1", name=op.f("ck_sweeps_total_positive")),
        sa.CheckConstraint("taken BETWEEN 0 AND total", name=op.f("ck_sweeps_taken_bounded")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweeps")),
        sa.UniqueConstraint("digest", name=op.f("uq_sweeps_digest")),
    )
    op.create_index(op.f("ix_sweeps_open_id"), "sweeps", ["open", "id"])
    op.create_table(
        "sweep_chunks",
        sa.Column("sweep_id", _key_text(32), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("questions", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("taken_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("applied_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("refused", sa.Integer(), nullable=True),
        sa.Column("spent_ms", sa.Integer(), nullable=True),
        sa.Column("rows", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], name=op.f("fk_sweep_chunks_sweep_id")),
        sa.PrimaryKeyConstraint("sweep_id", "first", name=op.f("pk_sweep_chunks")),
    )


def downgrade() -> None:
    op.drop_table("sweep_chunks")
    op.drop_table("sweeps")


def _key_text(length: int) -> sa.String:
    """Text sorted by code point: SQLite's own order, PostgreSQL's collation "C"."""
    by_code_point = sa.String(length, collation="C")
    return sa.String(length).with_variant(by_code_point, "postgresql")
