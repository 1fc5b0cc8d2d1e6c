"""Model profiles: a name, and an architecture or the raw config it is read from."""

from __future__ import annotations

from typing import Any, ClassVar

from marshmallow import ValidationError, validates_schema

from advisor.core.mixers import MIXERS
from advisor.core.precision import KV_BYTES
from advisor.schemas.architecture import ArchitectureBody
from advisor.schemas.base import Answer, Closed
from advisor.schemas.common import MessageAnswer, PageQuery, StoredAnswer, page_of
from advisor.schemas.containers import ListOf, MapOf, OpenObject, Section
from advisor.schemas.faults import fault
from advisor.schemas.fields import Choice, Name, Text, Whole

ALIAS_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/:+-]{0,199}$"


class ModelProfileBody(Closed):
    """A model by its `config.json` (`hf_config`) or by its `architecture`: exactly one of them."""

    json_schema_rules: ClassVar[dict[str, Any]] = {
        "oneOf": [{"required": ["hf_config"]}, {"required": ["architecture"]}],
        "dependentRequired": {"hf_quant_config": ["hf_config"]},
    }

    name = Name("Lower-case slug.", required=True)
    aliases = ListOf(
        Text("Another spelling.", 200, shortest=1, pattern=ALIAS_PATTERN),
        "Other spellings that plans may name the model by.",
        most=20, unique=True, load_default=list,
    )  # fmt: skip
    hf_config = OpenObject(
        "The model's `config.json` as published; keys that do not shape the model are ignored."
    )
    hf_quant_config = OpenObject(
        "The `hf_quant_config.json` beside it, where NVIDIA's Model Optimizer wrote one."
    )
    architecture = Section(ArchitectureBody, "The shape, written out.")

    @validates_schema
    def one_shape(self, data: dict[str, Any], **_: Any) -> None:
        """Exactly one of the two ways to give the shape."""
        if ("hf_config" in data) == ("architecture" in data):
            detail = "Exactly one of hf_config and architecture is expected."
            allowed = ["hf_config", "architecture"]
            raise ValidationError({"hf_config": fault(detail, allowed=allowed).messages})
        if "hf_quant_config" in data and "hf_config" not in data:
            detail = "hf_quant_config belongs to an hf_config."
            raise ValidationError({"hf_quant_config": fault(detail).messages})


class ParametersAnswer(Answer):
    """Parameters of the model."""

    total = Whole("All stored parameters.")
    active = Whole("Used by one decoded token: LM head in, input embedding table out.")
    by_part = MapOf(Whole(), "All stored parameters, by part.")


class LayersOfKindAnswer(Answer):
    """Layers that cache alike."""

    kind = Choice("Kind of mixer.", tuple(MIXERS))
    window_tokens = Whole(
        "Tokens it keeps; null: every token, or a state instead.", allow_none=True
    )
    layers = Whole("How many layers.")


class KvCacheAnswer(Answer):
    """What the cache of one sequence takes (whole model, TP1)."""

    bytes_per_token_by_precision = MapOf(
        Whole(),
        "What one token adds while every layer still keeps it [bytes].",
        keys=tuple(KV_BYTES),
    )
    layers_by_kind = ListOf(Section(LayersOfKindAnswer), "Which layers stop at their window.")
    index_bytes_per_token = Whole(
        "What the indexers of sparse attention add for one token, in a format of their own [bytes]."
    )
    state_bytes_per_sequence = Whole("State that does not grow with length [bytes].")


class ModelProfileAnswer(StoredAnswer):
    """A stored model profile, with what its shape alone tells."""

    name = Name()
    aliases = ListOf(Text())
    architecture = Section(ArchitectureBody)
    parameters = Section(ParametersAnswer)
    kv_cache = Section(KvCacheAnswer)
    context_length = Whole("Longest sequence [tokens]; null: not limited.", allow_none=True)
    valid_tensor_parallel = ListOf(
        Whole(),
        "Degrees over which heads, MLP and experts divide, with the blocks of their format.",
    )
    warnings = ListOf(Section(MessageAnswer))


ModelProfilePage: type[Answer] = page_of(ModelProfileAnswer, "ModelProfilePage")


class ModelProfileQuery(PageQuery):
    """Which model profiles to list."""

    family = Text(
        "Only models of this architecture family.", 100, load_default=None, allow_none=False
    )
