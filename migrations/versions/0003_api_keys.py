"""API keys, by their digests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("digest", _key_text(64), nullable=False),
        sa.Column("name", _key_text(100), nullable=False),
        sa.Column("scope", sa.String(10), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "scope IN ('read', 'write', 'admin')", name=op.f("ck_api_keys_scope_known")
        ),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_api_keys")),
    )
    op.create_index(op.f("ix_api_keys_name"), "api_keys", ["name"])


def downgrade() -> None:
    op.drop_table("api_keys")


def _key_text(length: int) -> sa.String:
    """Text sorted by code point: SQLite's own order, PostgreSQL's collation "C"."""
    by_code_point = sa.String(length, collation="C")
    return sa.String(length).with_variant(by_code_point, "postgresql")
