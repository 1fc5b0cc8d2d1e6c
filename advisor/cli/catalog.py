"""`advisor catalog`: the accelerators and models that the service ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from advisor.catalog.loader import hardware_documents, model_documents
from advisor.cli.database import migrated
from advisor.cli.tables import Figures, console, heading
from advisor.config import Settings
from advisor.core.model import ModelProfile

if TYPE_CHECKING:
    from advisor.service.database import Database


@click.group()
def catalog() -> None:
    """The accelerators and models that come with the service."""


@catalog.command("load")
def load_command() -> None:
    """Bring the database's catalogue up to date; what users changed or deleted stays so.

    The database is migrated first.
    """
    with migrated(Settings.from_environment()) as database:
        for line in load(database):
            click.echo(line)


def load(database: Database) -> list[str]:
    """Load the catalogue, and say what became of it, by kind."""
    from advisor.service import catalogue

    return [
        f"{kind}: {', '.join(f'{count} {what}' for what, count in asdict(counts).items())}"
        for kind, counts in catalogue.load(database).items()
    ]


@catalog.command("list")
@click.argument("kind", type=click.Choice(["hardware", "models"]), required=False)
def list_command(kind: str | None) -> None:
    """List what plans may name; needs no database."""
    output = console()
    if kind != "models":
        output.print(heading("Hardware"), _hardware(), "", sep="\n")
    if kind != "hardware":
        output.print(heading("Models"), _models(), sep="\n")


def _hardware() -> Figures:
    headers = [
        "name", "vendor", "memory\nGiB", "bandwidth\nGB/s", "dense bf16\nTFLOP/s",
        "dense fp8\nTFLOP/s", "price\nper h", "as of",
    ]  # fmt: skip
    return Figures(headers, map(_hardware_row, hardware_documents()), texts=2)


def _hardware_row(document: Mapping[str, Any]) -> list[str]:
    tflops, price = document["dense_tflops"], document["price"] or {}
    amount = f"{price['amount_per_hour']} {price['currency']}" if price else "-"
    return [
        document["name"],
        document["vendor"],
        f"{document['memory_gib']:g}",
        f"{document['memory_bandwidth_gb_s']:g}",
        *(f"{tflops[each]:g}" if each in tflops else "-" for each in ("bf16", "fp8")),
        amount,
        price.get("as_of") or "-",
    ]


def _models() -> Figures:
    headers = [
        "name", "weights", "parameters\nx 1e9", "active\nx 1e9", "context\ntokens",
        "KV cache\nB/token",
    ]  # fmt: skip
    return Figures(headers, map(_model_row, model_documents()), texts=2)


def _model_row(document: Mapping[str, Any]) -> list[str]:
    model = ModelProfile.from_mapping(document)
    shape = model.architecture
    return [
        model.name,
        shape.weights_precision,
        f"{shape.total_parameters / 1e9:.1f}",
        f"{shape.active_parameters / 1e9:.1f}",
        "no limit" if shape.context_length is None else f"{shape.context_length:,}",
        f"{model.kv_bytes_per_token(shape.kv_cache_precision):,.0f}",
    ]
