"""The history of profiles."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "profile_changes",
        sa.Column("id", _key_text(32), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(10), nullable=False),
        sa.Column("name", _key_text(100), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("change", sa.String(10), nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("client", _key_text(100), nullable=True),
        sa.Column("document", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_profile_changes")),
    )
    op.create_index(op.f("ix_profile_changes_name_id"), "profile_changes", ["name", "id"])


def downgrade() -> None:
    op.drop_table("profile_changes")


def _key_text(length: int) -> sa.String:
    """Text sorted by code point: SQLite's own order, PostgreSQL's collation "C"."""
    by_code_point = sa.String(length, collation="C")
    return sa.String(length).with_variant(by_code_point, "postgresql")
