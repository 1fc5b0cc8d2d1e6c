"""Names in a request, or whole profiles, to the core's profiles."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Generic, TypeVar, cast

from advisor.core.errors import FieldError, InvalidInput, unknown_choice
from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.service import metrics
from advisor.service.database import Database
from advisor.store.profiles import Profiles, StoredProfile, hardware_profiles, model_profiles

Profile = TypeVar("Profile")
Named = str | Mapping[str, Any]
Versions = Mapping[str, tuple[str, int | None]]
MOST_KEPT = 512
MOST_COMPARED = 5_000
"""Names that the unknown ones of a request are compared with, all together: 0.5 s of a core."""


class ProfileCache(Generic[Profile]):
    """Core profiles read from stored ones; the most recently used are kept.

    A stored profile gets a new version and time with every change, so nothing kept is ever stale.
    """

    def __init__(self, kind: str, read: Callable[[Mapping[str, Any]], Profile]) -> None:
        self.read = read
        self._hits = metrics.profile_cache_total.labels(kind, "hit")
        self._misses = metrics.profile_cache_total.labels(kind, "miss")
        self._kept: OrderedDict[object, Profile] = OrderedDict()
        self._lock = Lock()

    def profile(self, stored: StoredProfile) -> Profile:
        """The core's profile of a stored one."""
        key = (stored.name, stored.version, stored.updated_at)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                self._hits.inc()
                return self._kept[key]
        self._misses.inc()
        profile = self.read(stored.document)
        with self._lock:
            self._kept[key] = profile
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return profile


_models = ProfileCache("model", ModelProfile.from_mapping)
_hardware = ProfileCache("hardware", HardwareProfile.from_mapping)


@dataclass(frozen=True)
class Resolved:
    """The profiles of a request, and by the pointer of each its name and its version in the
    database: None where the request has brought it along."""

    model: ModelProfile
    hardware: tuple[HardwareProfile, ...]
    versions: Versions


def resolve(database: Database, model: Named, hardware: Sequence[Named]) -> Resolved:
    """The profiles that a request names or brings along.

    Raises InvalidInput with every unknown name (and the nearest known one) and every profile that
    the core refuses.
    """
    found_models, found, versions = resolve_all(
        database, {"/model": model}, {f"/hardware/{i}": given for i, given in enumerate(hardware)}
    )
    return Resolved(found_models["/model"], tuple(found.values()), versions)


def resolve_all(
    database: Database, models: Mapping[str, Named], hardware: Mapping[str, Named]
) -> tuple[dict[str, ModelProfile], dict[str, HardwareProfile], Versions]:
    """Models and devices that a request names or brings along, by their pointers, with what
    `Resolved.versions` says of them. Raises as `resolve` does."""
    found_models, found_hardware, of_models, of_hardware = _resolved(database, models, hardware)
    return found_models, found_hardware, of_models.versions | of_hardware.versions


def named_profiles(
    database: Database, models: Mapping[str, Named], hardware: Mapping[str, Named]
) -> dict[str, Any]:
    """The stored profiles that a request names, by kind and by that name, each with its version and
    its document; those it brings along are looked at, too. Raises as `resolve` does."""
    _, _, of_models, of_hardware = _resolved(database, models, hardware)
    return {"models": of_models.kept(), "hardware": of_hardware.kept()}


class KeptProfiles:
    """Profiles as they were when `named_profiles` found them, each read once.

    What brings a profile along has to live as long as this.
    """

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found
        self._read: dict[object, Any] = {}

    def model(self, entry: Named) -> ModelProfile:
        """The model of that name, or brought along."""
        return cast("ModelProfile", self._profile(entry, "models", _models))

    def hardware(self, entry: Named) -> HardwareProfile:
        """The device of that name, or brought along."""
        return cast("HardwareProfile", self._profile(entry, "hardware", _hardware))

    def _profile(self, entry: Named, kind: str, cache: ProfileCache[Any]) -> Any:
        key = (kind, entry if isinstance(entry, str) else id(entry))
        if key not in self._read:
            known = self._found[kind][entry]["document"] if isinstance(entry, str) else entry
            self._read[key] = cache.read(known)
        return self._read[key]


def _resolved(
    database: Database, models: Mapping[str, Named], hardware: Mapping[str, Named]
) -> tuple[
    dict[str, ModelProfile],
    dict[str, HardwareProfile],
    _Resolver[ModelProfile],
    _Resolver[HardwareProfile],
]:
    with database.reading() as session:
        of_models = _Resolver(session, model_profiles, _models, "Model")
        of_hardware = _Resolver(session, hardware_profiles, _hardware, "Hardware")
        found_models = of_models.resolve(models)
        found_hardware = of_hardware.resolve(hardware)
    errors = [*of_models.errors, *of_hardware.errors]
    if errors:
        raise InvalidInput(*errors)
    return found_models, found_hardware, of_models, of_hardware


def resolve_hardware(database: Database, name: str, pointer: str) -> HardwareProfile:
    """The hardware profile of that name. InvalidInput at `pointer`, with the nearest, otherwise."""
    with database.reading() as session:
        devices = _Resolver(session, hardware_profiles, _hardware, "Hardware")
        found = devices.resolve({pointer: name})
    if devices.errors:
        raise InvalidInput(*devices.errors)
    return found[pointer]


def resolve_model(database: Database, model: Named, pointer: str) -> ModelProfile:
    """The model profile named, or brought along. InvalidInput below `pointer` otherwise."""
    with database.reading() as session:
        models = _Resolver(session, model_profiles, _models, "Model")
        found = models.resolve({pointer: model})
    if models.errors:
        raise InvalidInput(*models.errors)
    return found[pointer]


class _Resolver(Generic[Profile]):
    """Resolves the entries of one kind with one query, and collects what is wrong with them."""

    def __init__(
        self, session: Any, store: Profiles, cache: ProfileCache[Profile], what: str
    ) -> None:
        self.session, self.store, self.cache, self.what = session, store, cache, what
        self.errors: list[FieldError] = []
        self.versions: dict[str, tuple[str, int | None]] = {}
        self.stored: Mapping[str, StoredProfile] = {}
        self.compared = 0

    def kept(self) -> dict[str, Any]:
        """What `named_profiles` says of the profiles that were named."""
        return {
            name: {"name": each.name, "version": each.version, "document": each.document}
            for name, each in self.stored.items()
        }

    def resolve(self, entries: Mapping[str, Named]) -> dict[str, Profile]:
        """The profile of each entry, by its pointer; those at fault are left out."""
        names = {name for name in entries.values() if isinstance(name, str)}
        self.stored = self.store.get_many(self.session, names) if names else {}
        profiles: dict[str, Profile] = {}
        for pointer, entry in entries.items():
            profile = self._profile(pointer, entry)
            if profile is not None:
                profiles[pointer] = profile
        return profiles

    def _profile(self, pointer: str, entry: Named) -> Profile | None:
        if not isinstance(entry, str):
            return self._inline(pointer, entry)
        known = self.stored.get(entry)
        if known is not None:
            self.versions[pointer] = known.name, known.version
            return self.cache.profile(known)
        self.errors.append(self._unknown(pointer, entry))
        return None

    def _unknown(self, pointer: str, name: str) -> FieldError:
        """The fault of a name that is not there, with the nearest one while looking is cheap."""
        if self.compared >= MOST_COMPARED:
            return FieldError(pointer, f"{self.what} {name!r} is not known.", given=name)
        names = self.store.names(self.session, name)
        self.compared += len(names)
        return unknown_choice(pointer, name, names, self.what)

    def _inline(self, pointer: str, entry: Mapping[str, Any]) -> Profile | None:
        self.versions[pointer] = str(entry["name"]), None
        try:
            return self.cache.read(entry)
        except InvalidInput as refused:
            self.errors += refused.under(pointer).errors
            return None
