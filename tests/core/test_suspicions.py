from __future__ import annotations

from typing import Any

import pytest

from advisor.core.hardware import HardwareProfile
from advisor.core.model import ModelProfile
from advisor.core.suspicions import DATA_SHEETS, price_warnings, suspicions
from tests.core.profiles import CONFIGS

H100: dict[str, Any] = {
    "name": "my-accelerator",
    "vendor": "NVIDIA",
    "memory_gib": 79.2,
    "memory_bandwidth_gb_s": 3350,
    "dense_tflops": {"bf16": 989.4, "fp8": 1978.9},
    "interconnect": {
        "kind": "nvlink",
        "topology": "switched",
        "bandwidth_gb_s_per_direction": 450,
        "domain_size": 8,
    },
}


def link(bandwidth: float, kind: str = "nvlink") -> dict[str, Any]:
    return H100["interconnect"] | {"kind": kind, "bandwidth_gb_s_per_direction": bandwidth}


def codes(**changes: Any) -> list[str]:
    profile = HardwareProfile.from_mapping(H100 | changes)
    return [warning["code"] for warning in suspicions(profile)]


def test_figures_of_the_data_sheet_raise_no_suspicion():
    assert codes() == []


def test_twice_the_dense_peak_is_suspected_to_be_sparse_whatever_the_device_is_called():
    for name in ("my-accelerator", "h100", "h100-sxm-80gb"):
        assert codes(name=name, dense_tflops={"bf16": 1979}) == ["suspect_sparse_tflops"]
    assert codes(dense_tflops={"bf16": 989, "fp8": 3958}) == ["suspect_sparse_tflops"] * 2


def test_the_suspicion_names_both_figures_and_the_cause():
    profile = HardwareProfile.from_mapping(H100 | {"dense_tflops": {"bf16": 1979}})
    (warning,) = suspicions(profile)
    assert "1979" in warning["detail"]
    assert "989.4" in warning["detail"]
    assert "sparsity" in warning["detail"]


def test_fp8_at_four_times_16_bits_is_suspected_on_any_device():
    unknown = {"vendor": "someone", "memory_bandwidth_gb_s": 1234}
    assert codes(**unknown, dense_tflops={"fp16": 100, "fp8": 400}) == ["suspect_sparse_tflops"]
    assert codes(**unknown, dense_tflops={"fp16": 100, "fp8": 200}) == []
    assert codes(**unknown, dense_tflops={"int8": 100, "fp8": 400}) == []


def test_twice_the_link_is_suspected_to_be_both_directions():
    assert codes(interconnect=link(900)) == ["suspect_both_directions"]
    assert codes(interconnect=link(64, "pcie")) == []
    assert codes(interconnect=None) == []


def test_the_same_figure_is_right_for_a_device_that_has_it():
    blackwell = {"name": "b200", "memory_bandwidth_gb_s": 8000, "dense_tflops": {"bf16": 2250}}
    assert codes(**blackwell, interconnect=link(900)) == []
    assert codes(**blackwell, interconnect=link(1800)) == ["suspect_both_directions"]


@pytest.mark.parametrize("plate", [24, 40, 80, 141, 180, 192, 288])
def test_a_name_plate_capacity_is_suspected_not_to_be_what_the_device_reports(plate: float):
    assert codes(memory_gib=plate) == ["suspect_gb_for_gib"]


def test_the_reported_capacity_is_told_where_the_device_is_known():
    profile = HardwareProfile.from_mapping(H100 | {"memory_gib": 80})
    assert "79.2 GiB" in suspicions(profile)[0]["detail"]


@pytest.mark.parametrize("sheet", DATA_SHEETS, ids=lambda s: "-".join(s.words))
def test_a_data_sheet_is_consistent_with_itself(sheet: Any):
    assert 0.9 * sheet.plate_gb < sheet.reported_gib < sheet.plate_gb
    assert 1.95 * sheet.dense_16_bit < sheet.dense_8_bit < 2.05 * sheet.dense_16_bit


def test_a_missing_price_and_a_missing_date_are_warned_of():
    price = {"amount_per_hour": "1", "currency": "USD", "as_of": "2026-01-01", "source": ""}
    by_price = {
        "no_price": None,
        "undated_price": price | {"as_of": None},
    }
    for code, given in by_price.items():
        profile = HardwareProfile.from_mapping(H100 | {"price": given})
        assert [warning["code"] for warning in price_warnings(profile)] == [code]
    assert price_warnings(HardwareProfile.from_mapping(H100 | {"price": price})) == []


def test_a_multimodal_config_is_counted_in_its_text_part_and_says_so():
    text = {"text_config": dict(CONFIGS["qwen3-32b"]), "vision_config": {"depth": 27}}
    found = ModelProfile.from_mapping({"name": "any", "hf_config": text})
    plain = ModelProfile.from_mapping({"name": "any", "hf_config": CONFIGS["qwen3-32b"]})
    assert found.architecture == plain.architecture
    assert [each["code"] for each in found.warnings] == ["text_part_only"]
    assert plain.warnings == ()
