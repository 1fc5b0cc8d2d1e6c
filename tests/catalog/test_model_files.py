from __future__ import annotations

import re
from importlib.resources import files

import pytest

from advisor.catalog.loader import model_documents
from advisor.core.mixers import MIXERS
from advisor.core.mlps import MLPS
from advisor.core.model import ModelProfile

DOCUMENTS = {document["name"]: document for document in model_documents()}
PROFILES = {name: ModelProfile.from_mapping(document) for name, document in DOCUMENTS.items()}

each = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
counted_by_others = pytest.mark.parametrize(
    "document",
    [document for document in DOCUMENTS.values() if document["published"]],
    ids=lambda document: document["name"],
)


def _digits(count: float) -> int:
    """Significant digits; a round thousand ("1T") has one."""
    return len(str(count).removesuffix("000").replace(".", "").lstrip("0"))


@each
def test_a_model_is_named_after_its_repository_and_says_where_it_is_from(document):
    assert set(document) == {"name", "aliases", "hf_config", "published", "source"}
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", document["name"])
    repositories = [alias for alias in document["aliases"] if "/" in alias]
    assert document["name"] in {repository.split("/")[1].lower() for repository in repositories}
    assert "huggingface.co" in document["source"]


def test_a_file_is_named_after_its_model():
    folder = files("advisor.catalog").joinpath("models")
    assert {file.name for file in folder.iterdir()} == {f"{name}.json" for name in DOCUMENTS}


@each
def test_a_config_keeps_shape_and_precision_alone(document):
    noise = {"bos_token_id", "eos_token_id", "initializer_range", "rope_theta", "hidden_act"}
    assert not noise & set(document["hf_config"])
    assert "_provenance" not in document["hf_config"]


@counted_by_others
def test_parameters_counted_from_the_shape_agree_with_the_published_count(document):
    published = document["published"]
    counted = PROFILES[document["name"]].architecture.total_parameters / 1e9
    # Fewer than three digits are a nominal size: "7B" of 7.62e9, "14B" of 14.77e9.
    tolerance = 0.01 if _digits(published["total_b"]) >= 3 else 0.09
    assert counted == pytest.approx(published["total_b"], rel=tolerance)


@counted_by_others
def test_active_parameters_agree_with_the_published_count(document):
    published = document["published"]
    counted = PROFILES[document["name"]].architecture.active_parameters / 1e9
    # Publishers differ in whether the embedding table, up to a tenth of a small model, counts, and
    # one digit of a small count is nominal: "A3B" of 3.56e9.
    tolerance = 0.1 if _digits(published["active_b"]) >= 2 else 0.2
    assert counted == pytest.approx(published["active_b"], rel=tolerance)


def test_thirty_models_and_more_are_known_with_every_kind_of_mixer_and_mlp():
    layers = [layer for profile in PROFILES.values() for layer in profile.architecture.layers]
    assert len(DOCUMENTS) >= 30
    # DeepSeek V4's checkpoints store experts in a format of their own, which is not known.
    assert {layer.mixer.kind for layer in layers if layer.mixer} == set(MIXERS) - {"compressed"}
    assert {layer.mlp.kind for layer in layers if layer.mlp} == set(MLPS)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("meta-llama-3.1-70b", "bf16"),
        ("llama-2-70b-hf", "fp16"),
        ("llama-3.1-70b-instruct-fp8", "fp8"),
        ("qwen3-32b-fp8", "fp8_block"),
        ("qwen3-235b-a22b-fp8", "fp8_block"),
        ("deepseek-r1", "fp8_block"),
        ("gpt-oss-120b", "mxfp4"),
    ],
)
def test_a_checkpoint_is_read_in_the_precision_it_is_stored_in(name, precision):
    assert PROFILES[name].architecture.weights_precision == precision


@pytest.mark.parametrize("size", ["30b-a3b", "235b-a22b"])
def test_quantized_experts_stay_quantized_though_their_router_is_not(size):
    architecture = PROFILES[f"qwen3-{size}-fp8"].architecture
    assert {"attention", "experts"} <= set(architecture.quantized_parts)


def test_layers_that_a_multimodal_checkpoint_lists_one_by_one_stay_unquantized():
    """Its `ignore` names attention and router of every text layer below `language_model.`."""
    architecture = PROFILES["llama-4-scout-17b-16e-instruct-fp8-dynamic"].architecture
    assert architecture.quantized_parts == ("experts", "shared_experts")


def test_experts_alone_are_quantized_where_expressions_leave_the_rest_out():
    architecture = PROFILES["kimi-k2.5"].architecture
    assert (architecture.weights_precision, architecture.quantized_parts) == (
        "int4_g32",
        ("experts",),
    )
