"""Profiles, plans and terminology checks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _create_profiles("hardware_profiles", "vendor")
    _create_profiles("model_profiles", "family")
    op.create_table(
        "model_names",
        sa.Column("label", _key_text(200), nullable=False),
        sa.Column("model", _key_text(100), nullable=False),
        sa.CheckConstraint(
            "length(label) BETWEEN 1 AND 200", name=op.f("ck_model_names_label_length")
        ),
        sa.ForeignKeyConstraint(
            ["model"], ["model_profiles.name"], name=op.f("fk_model_names_model")
        ),
        sa.PrimaryKeyConstraint("label", name=op.f("pk_model_names")),
    )
    op.create_index(op.f("ix_model_names_model"), "model_names", ["model"])
    op.create_table(
        "plans",
        sa.Column("id", _key_text(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model", _key_text(100), nullable=False),
        sa.Column("objective", sa.String(100), nullable=False),
        sa.Column("planner_version", sa.String(100), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_plans")),
    )
    op.create_index(op.f("ix_plans_model_id"), "plans", ["model", "id"])
    op.create_table(
        "terminology_checks",
        sa.Column("id", _key_text(32), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("request", sa.JSON(), nullable=False),
        sa.Column("answer", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_terminology_checks")),
    )


def downgrade() -> None:
    for table in (
        "terminology_checks",
        "plans",
        "model_names",
        "model_profiles",
        "hardware_profiles",
    ):
        op.drop_table(table)


def _create_profiles(table: str, filter_column: str) -> None:
    op.create_table(
        table,
        sa.Column("name", _key_text(100), nullable=False),
        sa.Column(filter_column, _key_text(100), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column("catalogued", sa.Boolean(), nullable=False),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("length(name) BETWEEN 1 AND 100", name=op.f(f"ck_{table}_name_length")),
        sa.CheckConstraint("version >= 1", name=op.f(f"ck_{table}_version_positive")),
        sa.CheckConstraint("origin IN ('catalog', 'user')", name=op.f(f"ck_{table}_origin_known")),
        sa.PrimaryKeyConstraint("name", name=op.f(f"pk_{table}")),
    )
    op.create_index(op.f(f"ix_{table}_deleted_name"), table, ["deleted", "name"])
    op.create_index(
        op.f(f"ix_{table}_deleted_{filter_column}_name"),
        table,
        ["deleted", filter_column, "name"],
    )


def _key_text(length: int) -> sa.String:
    """Text sorted by code point: SQLite's own order, PostgreSQL's collation "C"."""
    by_code_point = sa.String(length, collation="C")
    return sa.String(length).with_variant(by_code_point, "postgresql")
