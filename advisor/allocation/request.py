"""The question: demands, the inventory that may serve them, and what is to be small."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from advisor.allocation.problem import Device
from advisor.core.answer import money
from advisor.core.errors import FieldError, InvalidInput, unknown_choice
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.workload import PlanRequest

TENURES = ("owned", "rented")
MOST_ACCELERATORS = 4096
"""Of one demand: as many as a plan may have."""

MOST_APART = 10**10
"""The highest of the prices over the lowest: what the solver can count in one sum."""


@dataclass(frozen=True)
class Entry:
    """Accelerators of one kind that may be used.

    `price_per_hour` is what one that is used costs an hour; `priced_by` says who named it: the
    `request`, the `profile`, or `nobody` (owned, and counted as costing nothing).
    """

    name: str
    hardware: HardwareProfile
    accelerators: int
    tenure: str
    price_per_hour: Decimal
    priced_by: str
    whole_nodes: bool = False

    @property
    def device(self) -> Device:
        """The entry as the solver sees it; accelerators that fill no node are left out where nodes
        are taken whole."""
        per_unit = self.hardware.accelerators_per_node if self.whole_nodes else 1
        return Device(
            self.name, self.hardware.name, self.accelerators // per_unit, self.price_per_hour,
            self.hardware.tdp_w, per_unit,
        )  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """A demand. `entries` are places in the inventory that it may use; a `weight` says that it may
    be left unserved."""

    name: str
    request: PlanRequest
    entries: tuple[int, ...]
    weight: float | None


def profiles_named(body: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model of each demand of a loaded request body, and the hardware of each entry, by their
    pointers: names, or whole profiles."""
    models = {f"/demands/{i}/model": each["model"] for i, each in enumerate(body["demands"])}
    inventory = enumerate(body["inventory"])
    return models, {f"/inventory/{i}/hardware": each["hardware"] for i, each in inventory}


@dataclass(frozen=True)
class AllocationRequest:
    """Demands and an inventory. An allocation may lie a `max_gap` above the best [share], and its
    solver may take `time_limit_s`; `alternatives` asks for what would be otherwise."""

    demands: tuple[Wanted, ...]
    inventory: tuple[Entry, ...]
    objective: str
    currency: str
    max_gap: float
    time_limit_s: float
    alternatives: bool

    @classmethod
    def from_mapping(
        cls, body: Mapping[str, Any], models: Iterable[ModelProfile],
        hardware: Iterable[HardwareProfile],
    ) -> AllocationRequest:  # fmt: skip
        """A loaded request body, with the model of each demand and the hardware of each entry.

        InvalidInput for names that come twice or are not known, and for prices and powers that are
        missing, or too far apart, where they are to be counted.
        """
        pairs = list(zip(body["inventory"], hardware, strict=True))
        names = [entry["name"] or device.name for entry, device in pairs]
        errors = [
            *_repeated(names, "/inventory", "Another entry has this name: give each its own."),
            *_repeated([d["name"] for d in body["demands"]], "/demands",
                       "Another demand has this name."),
            *_other_profiles(pairs),
            *_unknown_entries(body["demands"], names),
            *_without_price(pairs, body["currency"]),
        ]  # fmt: skip
        if body["objective"] == "energy":
            errors += _without_power(pairs)
        if errors:
            raise InvalidInput(*errors)
        inventory = tuple(
            _entry(name, entry, device) for name, (entry, device) in zip(names, pairs, strict=True)
        )
        if body["objective"] == "cost":
            _refuse_far_apart(inventory)
        return cls(
            demands=tuple(
                _wanted(demand, model, inventory, names)
                for demand, model in zip(body["demands"], models, strict=True)
            ),
            inventory=inventory,
            objective=body["objective"],
            currency=body["currency"],
            max_gap=body["max_gap"],
            time_limit_s=body["time_limit_s"],
            alternatives=body["alternatives"],
        )


Pair = tuple[Mapping[str, Any], HardwareProfile]


def _entry(name: str, entry: Mapping[str, Any], device: HardwareProfile) -> Entry:
    given, per_node = entry["price_per_hour"], device.accelerators_per_node
    if given is not None:
        price, by = given, "request"
    elif entry["tenure"] == "owned" or device.price is None:
        price, by = Decimal(0), "nobody"
    else:
        price, by = device.price.amount_per_hour, "profile"
    count = entry["accelerators"]
    return Entry(
        name, device, entry["nodes"] * per_node if count is None else count,
        entry["tenure"], price, by, entry["whole_nodes"],
    )  # fmt: skip


def _wanted(
    demand: Mapping[str, Any], model: ModelProfile, inventory: Sequence[Entry],
    names: Sequence[str],
) -> Wanted:  # fmt: skip
    allowed = demand["inventory"]
    entries = tuple(i for i, name in enumerate(names) if allowed is None or name in allowed)
    asked = PlanRequest(
        model=model,
        hardware=_profiles(inventory[i] for i in entries),
        workload=demand["workload"],
        slo=demand["slo"],
        objective="latency",  # no layout is refused for want of a price
        weights=tuple(demand["precision"]["weights"]),
        kv_cache=tuple(demand["precision"]["kv_cache"]),
        limits=demand["limits"],
        serving=demand["serving"],
    )
    weight, must = demand["weight"], demand["must_have"]
    if must or (must is None and weight is None):
        weight = None
    elif weight is None:
        weight = 1.0
    return Wanted(demand["name"], asked, entries, weight)


def _profiles(entries: Iterable[Entry]) -> tuple[HardwareProfile, ...]:
    """Each kind of hardware once, without its price: entries have their own, in one currency."""
    kinds: dict[str, HardwareProfile] = {}
    for entry in entries:
        kinds.setdefault(entry.hardware.name, replace(entry.hardware, price=None))
    return tuple(kinds.values())


def _repeated(names: Sequence[str], place: str, detail: str) -> list[FieldError]:
    return [
        FieldError(f"{place}/{i}/name", detail, given=name)
        for i, name in enumerate(names)
        if name in names[:i]
    ]


def _other_profiles(pairs: Sequence[Pair]) -> list[FieldError]:
    """Entries whose hardware has the name of another one."""
    errors = []
    for i, (entry, device) in enumerate(pairs):
        for other, before in pairs[:i]:
            if before.name == device.name and other["hardware"] != entry["hardware"]:
                detail = "Another entry gives another profile of this name."
                errors.append(FieldError(f"/inventory/{i}/hardware", detail, given=device.name))
                break
    return errors


def _unknown_entries(
    demands: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[FieldError]:
    return [
        unknown_choice(f"/demands/{i}/inventory/{j}", name, names, "Inventory entry")
        for i, demand in enumerate(demands)
        for j, name in enumerate(demand["inventory"] or ())
        if name not in names
    ]


def _without_price(pairs: Sequence[Pair], currency: str) -> list[FieldError]:
    """Rented entries without a price in the currency that is counted in."""
    errors = []
    for i, (entry, device) in enumerate(pairs):
        if entry["price_per_hour"] is not None or entry["tenure"] == "owned":
            continue
        place = f"/inventory/{i}/price_per_hour"
        if device.price is None:
            detail = f"{device.name} has no price: give that of one accelerator for an hour."
            errors.append(FieldError(place, detail, given=None))
        elif device.price.currency != currency:
            detail = (
                f"The price of {device.name} is in {device.price.currency}, and costs are counted "
                f"in {currency}: give its price."
            )
            errors.append(FieldError(place, detail, given=None))
    return errors


def _without_power(pairs: Sequence[Pair]) -> list[FieldError]:
    return [
        FieldError(
            f"/inventory/{i}/hardware",
            f"{device.name} has no tdp_w, and objective energy compares powers.",
            given=device.name,
        )
        for i, (_, device) in enumerate(pairs)
        if device.tdp_w is None
    ]


def _refuse_far_apart(inventory: Sequence[Entry]) -> None:
    prices = [entry.price_per_hour for entry in inventory]
    least = min((price for price in prices if price), default=Decimal(0))
    errors = []
    for i, price in enumerate(prices):
        if price > least * MOST_APART:
            detail = (
                f"The lowest price of the inventory is {money(least)}, and none can be more than "
                f"{MOST_APART:,} times that."
            )
            allowed = {"maximum": money(least * MOST_APART)}
            place = f"/inventory/{i}/price_per_hour"
            errors.append(FieldError(place, detail, given=money(price), allowed=allowed))
    if errors:
        raise InvalidInput(*errors)
