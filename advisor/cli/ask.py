"""Questions to the planner, from names and files to the answer, by the API's own rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from advisor.allocation.allocate import Progress
from advisor.allocation.answer import answered
from advisor.allocation.request import AllocationRequest, profiles_named
from advisor.catalog.loader import hardware_profile, model_profile
from advisor.cli.faults import Refused
from advisor.core.errors import FieldError, InvalidInput
from advisor.core.figures import plan_figures
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.plans import plan
from advisor.core.techniques.advice import advice as techniques_advice
from advisor.core.techniques.subject import Given
from advisor.core.workload import PlanRequest
from advisor.schemas.allocation import loaded_allocation
from advisor.schemas.plans import loaded_plan
from advisor.schemas.sweeps import loaded_sweep
from advisor.schemas.techniques import loaded_advice
from advisor.sweeps.answers import Named
from advisor.sweeps.answers import answer as row_of
from advisor.sweeps.rows import Row
from advisor.web import strict_json

Document = dict[str, Any]
Profile = TypeVar("Profile", ModelProfile, HardwareProfile)


def answer(document: Any) -> Document:
    """What the API answers to this body, with the shipped catalogue in place of a database.

    Raises InvalidInput.
    """
    return plan(_request(loaded_plan(document))).as_dict()


def figures(document: Any, answered: Document, wanted: Sequence[str]) -> Document:
    """What charts of that answer show and it does not carry. Raises InvalidInput."""
    return plan_figures(_request(loaded_plan(document)), answered, wanted)


def advice(document: Any) -> Document:
    """What the API answers to this body of a request for advice, likewise. Raises InvalidInput."""
    body = loaded_advice(document)
    if body["plan"] is None:
        detail = "A plan is kept by the service: give its request as plan."
        raise InvalidInput(FieldError("/plan_id", detail, given=body["plan_id"]))
    smaller: dict[str, ModelProfile] = {}
    if body["distilled_model"] is not None:
        named = {"/distilled_model": body["distilled_model"]}
        smaller, errors = _resolve(named, model_profile, ModelProfile.from_mapping)
        if errors:
            raise InvalidInput(*errors)
    given = Given(smaller.get("/distilled_model"), body["speculative"], body["prefix_cache_hit"])
    try:
        request = _request(body["plan"])
        return techniques_advice(request, given, body["techniques"], body["objective"])
    except InvalidInput as refused:
        raise refused.under("/plan") from None


def allocation(document: Any, progress: Progress) -> Document:
    """What the API answers to this body of an allocation, likewise, telling `progress`. Raises
    InvalidInput and `SolverMissing`."""
    body = loaded_allocation(document)
    models, hardware = _profiles(*profiles_named(body))
    asked = AllocationRequest.from_mapping(body, models.values(), hardware.values())
    return answered(asked, progress)


def sweep(document: Any) -> tuple[int, Iterator[Row]]:
    """How many questions this body of a sweep asks, and the row of each, likewise. Raises
    InvalidInput."""
    questions = loaded_sweep(document)["questions"]
    of_models, of_hardware = questions.named()
    models, hardware = _profiles(of_models, of_hardware)
    model, device = _finder(of_models, models), _finder(of_hardware, hardware)
    items = range(questions.total)
    return len(items), (row_of(item, questions.ask(item), model, device) for item in items)


def _finder(
    entries: Mapping[str, Named], found: Mapping[str, Profile]
) -> Callable[[Named], Profile]:
    """Finds the profile of an entry, a name or an object, by what was found at its pointer."""

    def key(entry: Named) -> str | int:
        return entry if isinstance(entry, str) else id(entry)

    by_entry = {key(entry): found[pointer] for pointer, entry in entries.items()}
    return lambda entry: by_entry[key(entry)]


def parsed(text: bytes, source: str) -> Any:
    """The value of a JSON text, read as strictly as the API reads it. Raises `Refused`."""
    try:
        return strict_json.parse(text)
    except strict_json.MalformedJson as error:
        raise Refused(f"{source}: {error}") from None


def model_in(given: str) -> str | Document:
    """A model as a request takes it: a name, or what the file holds when `given` ends in `.json`.

    The file is a whole profile, or a `config.json`: then the model takes the name of the file, or
    of its directory when the file is called just that. Raises InvalidInput and `Refused`.
    """
    document: str | Document = _from_file("/model", given)
    if not isinstance(document, dict) or {"hf_config", "architecture"} & document.keys():
        return document
    path = Path(given)
    name = path.resolve().parent.name if path.stem == "config" else path.stem
    return {"name": _slug(name), "hf_config": document}


def hardware_in(given: Sequence[str]) -> list[str | Document]:
    """Hardware as a request takes it: names, or profiles from files that end in `.json`.

    Raises InvalidInput and `Refused`.
    """
    return [_from_file(f"/hardware/{index}", each) for index, each in enumerate(given)]


def _from_file(pointer: str, given: str) -> Any:
    if not given.endswith(".json"):
        return given
    try:
        return parsed(Path(given).read_bytes(), given)
    except OSError as error:
        detail = f"The file cannot be read: {error.strerror}."
        raise InvalidInput(FieldError(pointer, detail, given=given)) from None


def _slug(text: str) -> str:
    return re.sub("[^a-z0-9._-]+", "-", text.lower()).strip("._-")[:100] or "model"


def _request(ask: Mapping[str, Any]) -> PlanRequest:
    """The core's request of a loaded body. Raises InvalidInput for names and shapes."""
    named = {f"/hardware/{index}": each for index, each in enumerate(ask["hardware"])}
    models, hardware = _profiles({"/model": ask["model"]}, named)
    return PlanRequest.from_mapping(ask, models["/model"], hardware.values())


def _profiles(
    models: Mapping[str, Named], hardware: Mapping[str, Named]
) -> tuple[dict[str, ModelProfile], dict[str, HardwareProfile]]:
    """The profiles of both kinds by their pointers. InvalidInput with the faults of all."""
    found, errors = _resolve(models, model_profile, ModelProfile.from_mapping)
    devices, faults = _resolve(hardware, hardware_profile, HardwareProfile.from_mapping)
    if errors or faults:
        raise InvalidInput(*errors, *faults)
    return found, devices


def _resolve(
    entries: Mapping[str, Any],
    by_name: Callable[[str], Profile],
    read: Callable[[Mapping[str, Any]], Profile],
) -> tuple[dict[str, Profile], list[FieldError]]:
    """The profile of each entry by its pointer, and the faults of those that have none."""
    found: dict[str, Profile] = {}
    errors: list[FieldError] = []
    for pointer, entry in entries.items():
        try:
            found[pointer] = by_name(entry) if isinstance(entry, str) else read(entry)
        except InvalidInput as refused:
            errors += refused.under(pointer).errors
    return found, errors
