"""Fields that hold other fields: lists, maps, objects and alternatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from marshmallow import Schema, ValidationError, fields

from advisor.core.errors import FieldError, nearest_name
from advisor.schemas.faults import MOST_FAULTS, fault
from advisor.schemas.fields import ApiField, JsonSchema


class ListOf(ApiField):
    """A list of `inner` values, between `fewest` and `most` of them, each once when `unique`."""

    def __init__(
        self, inner: fields.Field[Any], doc: str = "", *, fewest: int = 0, most: int | None = None,
        unique: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(doc, **kwargs)
        self.inner, self.fewest, self.most, self.unique = inner, fewest, most, unique

    def _read(self, value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise fault("A list is expected.", given=value)
        if len(value) < self.fewest or (self.most is not None and len(value) > self.most):
            allowed = {"minimum_items": self.fewest, "maximum_items": self.most}
            raise fault(f"The list has {len(value)} items.", allowed=allowed)
        items = _each(enumerate(value), self.inner)
        if self.unique:
            _refuse_repeats(value)
        return list(items.values())

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """An array."""
        schema = {"minItems": self.fewest or None, "maxItems": self.most,
                  "uniqueItems": self.unique or None}  # fmt: skip
        items = converter.field2property(self.inner)
        return {"type": "array", "items": items} | {k: v for k, v in schema.items() if v}


class MapOf(ApiField):
    """An object whose keys are data, out of `keys` unless that is None; each value like `inner`."""

    def __init__(
        self, inner: fields.Field[Any], doc: str = "", *, keys: Sequence[str] | None = None,
        fewest: int = 0, most: int = 100, longest_key: int = 100, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(doc, **kwargs)
        self.inner, self.keys = inner, tuple(keys) if keys is not None else None
        self.fewest, self.most, self.longest_key = fewest, most, longest_key

    def _read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise fault("An object is expected.", given=value)
        if not self.fewest <= len(value) <= self.most:
            allowed = {"minimum_properties": self.fewest, "maximum_properties": self.most}
            raise fault(f"The object has {len(value)} fields.", allowed=allowed)
        wrong = {key: self._key_errors(key) for key in value}
        wrong = {key: errors for key, errors in wrong.items() if errors}
        if wrong:
            raise ValidationError(wrong)
        return _each(value.items(), self.inner)

    def _key_errors(self, key: str) -> list[FieldError]:
        if self.keys is None:
            printable = key.isprintable() and 0 < len(key) <= self.longest_key
            allowed = {"maximum_length": self.longest_key}
            return [] if printable else [FieldError("", "This cannot be a key.", allowed=allowed)]
        if key in self.keys:
            return []
        near = nearest_name(key[:100], self.keys)
        return [FieldError("", "This key does not exist.", allowed=list(self.keys), nearest=near)]

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """An object with a property for each key."""
        value = converter.field2property(self.inner)
        if self.keys is not None:
            schema: JsonSchema = {"properties": dict.fromkeys(self.keys, value)}
            schema["additionalProperties"] = False
        else:
            names = {"minLength": 1, "maxLength": self.longest_key}
            schema = {"additionalProperties": value, "propertyNames": names}
            schema["maxProperties"] = self.most
        least = {"minProperties": self.fewest} if self.fewest else {}
        return {"type": "object"} | schema | least


class Section(ApiField):
    """A nested object of a schema of its own."""

    def __init__(self, schema: type[Schema], doc: str = "", **kwargs: Any) -> None:
        super().__init__(doc, **kwargs)
        self.schema = schema()

    def _read(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise fault("An object is expected.", given=value)
        return self.schema.load(value)

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """A reference to the nested schema."""
        reference: JsonSchema = converter.resolve_nested_schema(self.schema)
        return reference


class Variant(ApiField):
    """One of several objects, told apart by their field `kind`."""

    def __init__(self, kinds: Mapping[str, type[Schema]], doc: str = "", **kwargs: Any) -> None:
        super().__init__(doc, **kwargs)
        self.kinds = {kind: schema() for kind, schema in kinds.items()}

    def _read(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise fault("An object is expected.", given=value)
        kind = value.get("kind")
        if not isinstance(kind, str) or kind not in self.kinds:
            wrong = fault("This is not one of the kinds.", given=kind, allowed=sorted(self.kinds))
            raise ValidationError({"kind": wrong.messages})
        return self.kinds[kind].load(value)

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """Exactly one of the kinds."""
        return {"oneOf": [converter.resolve_nested_schema(s) for s in self.kinds.values()]}


class Either(ApiField):
    """A scalar, or an object: what arrives decides."""

    def __init__(
        self, scalar: ApiField, schema: type[Schema], doc: str = "", **kwargs: Any
    ) -> None:
        super().__init__(doc, **kwargs)
        self.scalar, self.schema = scalar, schema()

    def _read(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.schema.load(value)
        return self.scalar.deserialize(value)

    def json_schema(self, converter: Any, /) -> JsonSchema:
        """Either of the two."""
        scalar = converter.field2property(self.scalar)
        return {"anyOf": [scalar, converter.resolve_nested_schema(self.schema)]}


class OpenObject(ApiField):
    """A JSON object of any shape, up to `most` values, `deepest` levels and `longest` a text.

    Numbers become `int` and `float`.
    """

    def __init__(
        self, doc: str = "", *, most: int = 20_000, deepest: int = 12, longest: int = 10_000,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(doc, **kwargs)
        self.most, self.deepest, self.longest = most, deepest, longest

    def _read(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise fault("An object is expected.", given=value)
        self._measure(value)
        copy: dict[str, Any] = plain(value)
        return copy

    def _measure(self, value: Mapping[str, Any]) -> None:
        level: list[Any] = [value]
        seen = depth = 0
        while level:
            seen, depth = seen + len(level), depth + 1
            if seen > self.most or depth > self.deepest:
                allowed = {"maximum_values": self.most, "maximum_depth": self.deepest}
                raise fault("The object is too large.", allowed=allowed)
            if any(isinstance(v, str) and len(v) > self.longest for v in level):
                raise fault("A text in it is too long.", allowed={"maximum_length": self.longest})
            level = [inner for v in level for inner in _children(v)]

    def json_schema(self, _: Any, /) -> JsonSchema:
        """Any object."""
        return {"type": "object", "additionalProperties": True}


def _children(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, list) else []


def plain(value: Any) -> Any:
    """`value` with every Decimal as the float nearest to it, as JSON is written."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def _each(items: Any, inner: fields.Field[Any]) -> dict[Any, Any]:
    """Every value loaded by `inner`; the faults of all of them together."""
    loaded, faults = {}, {}
    for key, value in items:
        try:
            loaded[key] = inner.deserialize(value)
        except ValidationError as error:
            faults[key] = error.messages
            if len(faults) >= MOST_FAULTS:
                break
    if faults:
        raise ValidationError(faults)
    return loaded


def _refuse_repeats(values: list[Any]) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            detail = "This item is listed twice."
            raise ValidationError({index: fault(detail, given=value).messages})
