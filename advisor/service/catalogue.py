"""Loading the catalogue that the service ships into its database."""

from __future__ import annotations

from advisor.catalog.loader import hardware_documents, model_documents
from advisor.service.database import Database
from advisor.service.profiles import HARDWARE, MODELS
from advisor.store.seeding import SeedCounts, seed


def load(database: Database) -> dict[str, SeedCounts]:
    """Bring the catalogue's entries up to date, by kind; what users changed or deleted stays so.

    Two processes may do this at once.
    """
    documents = {
        HARDWARE: [HARDWARE.normalise(document) for document in hardware_documents()],
        MODELS: [MODELS.normalise(document) for document in model_documents()],
    }
    counts = {}
    for kind, shipped in documents.items():
        with database.writing() as session:
            counts[kind.name] = seed(session, kind.store, shipped)
    return counts
