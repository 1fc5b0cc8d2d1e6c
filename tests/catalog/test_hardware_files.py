from __future__ import annotations

import datetime
import json
import re
from decimal import Decimal
from importlib.resources import files

import pytest

from advisor.catalog.loader import hardware_documents
from advisor.core.hardware import ARITHMETIC, INTERCONNECTS, TOPOLOGIES, HardwareProfile

DOCUMENTS = {document["name"]: document for document in hardware_documents()}
FIELDS = {
    "name", "vendor", "generation", "description", "memory_gib", "memory_bandwidth_gb_s",
    "dense_tflops", "interconnect", "network", "accelerators_per_node", "tdp_w", "price",
    "efficiency", "sources", "uncertain_fields", "notes",
}  # fmt: skip
SOURCED = {
    "memory_gib", "memory_bandwidth_gb_s", "dense_tflops", "interconnect", "network",
    "accelerators_per_node", "tdp_w", "price",
}  # fmt: skip

each = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
linked = [document for document in DOCUMENTS.values() if document["interconnect"]]
priced = [document for document in DOCUMENTS.values() if document["price"]]


@each
def test_an_entry_has_the_fields_of_the_api_and_nothing_else(document):
    assert set(document) == FIELDS
    assert re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,99}", document["name"])
    assert document["generation"]
    assert HardwareProfile.from_mapping(document).name == document["name"]


@each
def test_every_figure_and_every_absent_one_has_a_source_or_a_reason(document):
    assert set(document["sources"]) == SOURCED
    assert all(len(source) > 3 for source in document["sources"].values())
    for absent in (f for f in ("network", "interconnect", "tdp_w") if document[f] is None):
        assert document["sources"][absent].startswith("not recorded")


@each
def test_an_uncertain_field_is_a_field(document):
    for path in document["uncertain_fields"]:
        value = document
        for key in path.split("."):
            value = value[key]
        assert value is not None


@each
def test_usable_memory_is_less_than_the_name_plate_but_not_by_much(document):
    (plate,) = re.findall(r"(\d+) GB", document["description"])
    assert 0.91 * int(plate) < document["memory_gib"] < int(plate)


@each
def test_memory_that_no_device_reported_follows_the_haircut_rule(document):
    rule = re.match(r"(0\.985|0\.918) x ([\d.]+) GiB", document["sources"]["memory_gib"])
    if rule is None:
        assert "report" in document["sources"]["memory_gib"]
    else:
        assert document["memory_gib"] == round(float(rule[1]) * float(rule[2]), 2)
        assert "memory_gib" in document["uncertain_fields"]


@each
def test_arithmetic_is_dense_and_halving_the_bits_at_most_doubles_it(document):
    tflops = document["dense_tflops"]
    assert tflops
    assert set(tflops) <= set(ARITHMETIC)
    assert set(tflops) & {"bf16", "fp16"}
    sixteen = max(tflops.get("bf16", 0), tflops.get("fp16", 0))
    assert tflops.get("tf32", 0) <= sixteen
    assert tflops.get("fp8", 0) <= 2.03 * sixteen
    # FP4 has units of its own on the B300 (3.1), and the RTX 5090 halves FP8 alone (4).
    assert tflops.get("fp4", 0) <= 4 * tflops.get("fp8", 0)


@each
def test_a_generation_has_no_format_that_its_architecture_lacks(document):
    lacks = {
        "volta": {"bf16", "tf32", "fp8", "fp4"},
        "turing": {"bf16", "tf32", "fp8", "fp4"},
        "ampere": {"fp8", "fp4"},
        "ada": {"fp4"},
        "hopper": {"fp4"},
        "cdna2": {"fp8", "fp4"},
        "cdna3": {"fp4"},
    }
    assert not set(document["dense_tflops"]) & lacks.get(document["generation"], set())


@pytest.mark.parametrize("document", linked, ids=lambda document: document["name"])
def test_a_link_is_one_direction_of_a_known_kind(document):
    link = document["interconnect"]
    assert link["kind"] in INTERCONNECTS
    assert link["topology"] in TOPOLOGIES
    assert link["domain_size"] >= 1
    # No link of one accelerator carries more than 900 GB/s in one direction (NVLink 5).
    assert 10 < link["bandwidth_gb_s_per_direction"] <= 900
    if link["kind"] == "pcie":
        assert link["topology"] == "shared"
        assert link["bandwidth_gb_s_per_direction"] <= 64
        assert link["domain_size"] == document["accelerators_per_node"]


@pytest.mark.parametrize(
    ("name", "bandwidth", "arithmetic", "tflops", "link"),
    [
        # NVIDIA Hopper white paper: 3.35 TB/s; BF16 989.4, FP8 1978.9 dense; NVLink 900 both ways
        ("h100-sxm-80gb", 3350, "bf16", 989.4, 450),
        ("h100-sxm-80gb", 3350, "fp8", 1978.9, 450),
        # NVIDIA A100 data sheet: BF16 312 (624 sparse); NVLink 600 both ways
        ("a100-sxm-80gb", 2039, "bf16", 312, 300),
        # HGX B200 data sheet: 4.5 PFLOPS sparse BF16; NVLink 1.8 TB/s both ways
        ("b200", 8000, "bf16", 2250, 900),
        # NVIDIA A40 data sheet: 149.7 (299.4 sparse), PCIe 4 64 both ways
        ("a40", 696, "bf16", 149.7, 31),
        # AMD MI300X: 2100 MHz x 1216 matrix cores x 512 = 1307.4; seven links of 64
        ("mi300x", 5300, "bf16", 1307.4, 448),
        # Google: 459 and 2765, ICI 1200 both ways; 2307 and 7380
        ("tpu-v5p", 2765, "bf16", 459, 600),
        ("tpu7x-ironwood", 7380, "bf16", 2307, 600),
    ],
)
def test_known_devices_have_their_data_sheet_figures(name, bandwidth, arithmetic, tflops, link):
    document = DOCUMENTS[name]
    assert document["memory_bandwidth_gb_s"] == bandwidth
    assert document["dense_tflops"][arithmetic] == tflops
    assert document["interconnect"]["bandwidth_gb_s_per_direction"] == link


@pytest.mark.parametrize("document", priced, ids=lambda document: document["name"])
def test_a_price_is_one_positive_dated_on_demand_offer(document):
    price = document["price"]
    assert set(price) == {"amount_per_hour", "currency", "as_of", "source"}
    assert isinstance(price["amount_per_hour"], str)
    assert Decimal("0.1") < Decimal(price["amount_per_hour"]) < 20
    assert re.fullmatch(r"[A-Z]{3}", price["currency"])
    assert price["source"].endswith("on-demand")
    if price["as_of"] is None:
        assert "date of the listing unknown" in document["sources"]["price"]
    else:
        day = datetime.date.fromisoformat(price["as_of"])
        assert day <= datetime.datetime.now(datetime.UTC).date()


def test_twelve_devices_and_more_of_three_vendors_have_a_price():
    assert len(priced) >= 12
    assert len({document["vendor"] for document in priced}) >= 3


def test_a_device_left_out_has_a_reason_and_no_entry():
    for file in files("advisor.catalog").joinpath("hardware").iterdir():
        for absent in json.loads(file.read_text(encoding="utf-8"))["left_out"]:
            assert absent["reason"]
            assert absent["name"] not in DOCUMENTS


def test_an_entry_stands_in_the_file_of_its_vendor():
    for file in files("advisor.catalog").joinpath("hardware").iterdir():
        entries = json.loads(file.read_text(encoding="utf-8"))["accelerators"]
        assert {f"{entry['vendor']}.json" for entry in entries} == {file.name}
