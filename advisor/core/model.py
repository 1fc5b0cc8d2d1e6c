"""Model profiles: a named architecture, and everything that is known from its shape alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from advisor.core import architecture as shapes
from advisor.core.architecture import Architecture
from advisor.core.config_reader import ConfigReader
from advisor.core.errors import FieldError, InvalidInput, unknown_choice
from advisor.core.families import FAMILIES, base_architecture, unread_shaping_keys
from advisor.core.mixers import Cache
from advisor.core.mlps import MoeMlp
from advisor.core.parallelism import tensor_parallel_faults
from advisor.core.precision import KV_BYTES
from advisor.core.quantization import QUANTIZABLE, Checkpoint, read_checkpoint
from advisor.core.suspicions import model_warnings

MAX_TENSOR_PARALLEL = 128
"""Largest degree listed as valid; no engine runs one layer over more ranks."""


@dataclass(frozen=True, eq=False)
class ModelProfile:
    """A model by name. Two profiles are equal only when they are the same object, so that work
    done for one can be kept by it."""

    name: str
    architecture: Architecture
    aliases: tuple[str, ...] = ()
    warnings: tuple[Mapping[str, str], ...] = field(default=())

    @classmethod
    def from_mapping(cls, document: Mapping[str, Any]) -> ModelProfile:
        """Read a profile from its API form, by `hf_config` or by `architecture`.

        InvalidInput names the key at fault; an architecture that is not known is refused, never
        guessed. A stored profile brings its warnings along.
        """
        notes: tuple[str, ...] = ()
        others: list[str] = []
        if "hf_config" in document:
            config = document["hf_config"]
            architecture, notes = _read(config, document.get("hf_quant_config"))
            others = [part for part in _OTHER_PARTS if config.get(part) is not None]
        else:
            architecture = _check(shapes.from_mapping(document["architecture"]))
        found = model_warnings(document["name"], architecture.weights_precision, notes, others)
        return cls(
            name=document["name"],
            aliases=tuple(document.get("aliases") or ()),
            architecture=architecture,
            warnings=tuple(document.get("warnings") or found),
        )

    @cached_property
    def valid_tensor_parallel(self) -> tuple[int, ...]:
        """Degrees up to 128 over which heads, MLP and experts divide, and the blocks or groups of
        the checkpoint's own format with them."""
        shape = self.architecture
        own = shape.weights_precision, shape.quantized_parts or QUANTIZABLE
        degrees = range(1, MAX_TENSOR_PARALLEL + 1)
        return tuple(n for n in degrees if not tensor_parallel_faults(shape, n, 1, None, *own))

    def kv_bytes_per_token(self, precision: str, ranks: int = 1) -> float:
        """Bytes that one more token caches on each of `ranks`, over all layers, while every layer
        still keeps it."""
        return KV_BYTES[precision] * sum(cache.elements for cache in self._caches(ranks))

    def _caches(self, ranks: int = 1) -> Iterator[Cache]:
        for layer in self.architecture.layers:
            if layer.mixer is not None:
                yield from layer.mixer.caches(ranks)

    @property
    def state_bytes_per_sequence(self) -> float:
        """Recurrent state of one sequence in the whole model [bytes], at TP 1."""
        mixers = (layer.mixer for layer in self.architecture.layers)
        return sum(mixer.state_bytes(1) for mixer in mixers if mixer is not None)

    def as_document(self) -> dict[str, Any]:
        """The normalised profile, as stored and answered."""
        shape = self.architecture
        return {
            "name": self.name,
            "aliases": list(self.aliases),
            "architecture": shapes.as_mapping(shape),
            "parameters": {
                "total": shape.total_parameters,
                "active": shape.active_parameters,
                "by_part": shape.parameters_by_part,
            },
            "kv_cache": {
                "bytes_per_token_by_precision": {
                    p: round(self.kv_bytes_per_token(p)) for p in KV_BYTES
                },
                "layers_by_kind": self._layers_by_kind(),
                "index_bytes_per_token": round(sum(c.fixed_bytes for c in self._caches())),
                "state_bytes_per_sequence": round(self.state_bytes_per_sequence),
            },
            "context_length": shape.context_length,
            "valid_tensor_parallel": list(self.valid_tensor_parallel),
            "warnings": [dict(warning) for warning in self.warnings],
        }

    def _layers_by_kind(self) -> list[dict[str, Any]]:
        kinds: Counter[tuple[str, int | None]] = Counter()
        for layer, count in self.architecture.layer_counts.items():
            if layer.mixer is not None:
                kinds[layer.mixer.kind, getattr(layer.mixer, "window", None)] += count
        return [
            {"kind": kind, "window_tokens": window, "layers": count}
            for (kind, window), count in kinds.items()
        ]


_OTHER_PARTS = ("vision_config", "audio_config", "speech_config")
"""Parts of a multimodal config beside its text part."""

_SHARED_KEYS = ("tie_word_embeddings", "torch_dtype", "dtype", "quantization_config")
"""Keys that a multimodal config may state once, outside its text part."""


def read_hf_config(
    config: Mapping[str, Any], quant_config: Mapping[str, Any] | None = None
) -> Architecture:
    """The architecture of a raw `config.json`, and of the hf_quant_config.json beside it.

    InvalidInput names the keys that are not known.
    """
    return _read(config, quant_config)[0]


def _read(
    config: Mapping[str, Any], quant_config: Mapping[str, Any] | None
) -> tuple[Architecture, tuple[str, ...]]:
    """The architecture, and notes on what of its checkpoint is counted otherwise."""
    outer = ConfigReader(config)
    nested = config.get("text_config")
    if nested is not None and not isinstance(nested, Mapping):
        raise outer.refuse("text_config", "text_config is an object.", given=nested)
    if nested is not None:
        inherited = {key: config[key] for key in _SHARED_KEYS if config.get(key) is not None}
        reader = ConfigReader(inherited | dict(nested), "/hf_config/text_config")
    else:
        reader = outer
    model_type = reader.get("model_type")
    if not isinstance(model_type, str):
        raise reader.refuse("model_type", "The config needs model_type.", allowed=sorted(FAMILIES))
    if model_type not in FAMILIES:
        raise InvalidInput(
            unknown_choice(f"{reader.pointer}/model_type", model_type, FAMILIES, "Model family")
        )
    shape = base_architecture(reader, model_type)
    unread = unread_shaping_keys(reader)
    if unread:
        raise InvalidInput(
            *(
                FieldError(
                    f"{reader.pointer}/{key}",
                    f"{model_type} has no {key}: this is not an architecture known here.",
                )
                for key in unread
            )
        )
    beside = None if quant_config is None else ConfigReader(quant_config, "/hf_quant_config")
    checkpoint = read_checkpoint(reader, shape, beside)
    return _check(_stored(shape, checkpoint)), checkpoint.notes


def _stored(shape: Architecture, checkpoint: Checkpoint) -> Architecture:
    return replace(
        shape,
        plain_precision=checkpoint.plain_precision,
        weights_precision=checkpoint.weights_precision,
        quantized_parts=checkpoint.quantized_parts,
        kv_cache_precision=checkpoint.kv_cache_precision,
    )


def _check(shape: Architecture) -> Architecture:
    moe = {layer.mlp for layer in shape.layers if isinstance(layer.mlp, MoeMlp)}
    if len(moe) > 1:
        raise InvalidInput(
            FieldError("/architecture/layer_kinds", "All layers with experts have the same ones.")
        )
    return shape
