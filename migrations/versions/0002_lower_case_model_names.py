"""What models may be called, in lower case: people write it in any."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    names = sa.table("model_names", sa.column("label", sa.String), sa.column("model", sa.String))
    connection = op.get_bind()
    labels = set(connection.scalars(sa.select(names.c.label)))
    for label in sorted(each for each in labels if each != each.lower()):
        row = names.c.label == label
        if label.lower() in labels:
            connection.execute(sa.delete(names).where(row))
        else:
            connection.execute(sa.update(names).where(row).values(label=label.lower()))
            labels.add(label.lower())


def downgrade() -> None:
    """Names in lower case are good names there too."""
