"""Engine defaults by version and device, as their sources and logs state them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.core.engines import engine_settings, serving_faults
from advisor.core.layouts import Split
from advisor.core.workload import Serving
from tests.core.profiles import answer, device, workload


def settings(version=None, on="h100", ranks=1, longest=4096.0, engine="vllm", **serving):
    ask = Serving(engine=engine, engine_version=version, **serving)
    return engine_settings(ask, device(on) if isinstance(on, str) else on, Split(ranks), longest)


@pytest.mark.parametrize(
    ("version", "utilization", "graphs", "sampler"),
    [
        ("0.6.6.post1", 0.9, False, "pytorch"),
        ("0.8.5", 0.9, False, "pytorch"),
        ("0.11.0", 0.9, False, "pytorch"),
        ("0.17.1", 0.9, False, "triton"),
        ("0.19.1", 0.9, False, "triton"),
        ("0.20.0", 0.92, True, "triton"),
        ("0.21.0", 0.92, True, "flashinfer"),
        ("v0.29.0rc1", 0.92, True, "flashinfer"),
        ("0.33.0", 0.92, True, "flashinfer"),
        (None, 0.92, True, "flashinfer"),
    ],
)
def test_a_version_of_vllm_has_its_own_budget(version, utilization, graphs, sampler):
    found = settings(version)
    assert found.memory_utilization == utilization
    assert (found.graph_gib.value > 0) == graphs
    assert found.sampler == sampler


@pytest.mark.parametrize(
    ("version", "on", "seqs", "tokens"),
    [
        ("0.11.0", "h100", 1024, 8192),
        ("0.11.0", "mi300x", 1024, 8192),
        ("0.33.0", "mi300x", 1024, 16384),
        ("0.33.0", "h100", 1024, 8192),
        ("0.33.0", "h200", 1024, 8192),
        ("0.8.3", "h100", 1024, 8192),
        ("0.8.3", "mi300x", 1024, 2048),
        ("0.8.0", "l40s", 1024, 2048),
        ("0.8.4", "mi300x", 256, 2048),
        ("0.8.4", "h200", 1024, 8192),
        ("0.8.5", "a100", 1024, 8192),
        ("0.8.5", "l40s", 256, 2048),
        ("0.9.0", "a100", 256, 2048),
        ("0.33.0", "a100", 256, 2048),
        ("0.33.0", "l40s", 256, 2048),
    ],
)
def test_batch_limits_follow_the_version_and_the_device(version, on, seqs, tokens):
    found = settings(version, on)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, tokens)


def test_before_chunked_prefill_a_whole_prompt_is_one_step():
    assert settings("0.6.6", longest=20_000).max_num_batched_tokens == 20_000
    assert settings("0.6.6", longest=1_000).max_num_batched_tokens == 2048
    assert settings("0.6.6", longest=131_072).max_num_batched_tokens == 2048
    assert settings("0.8.0", "l40s", longest=20_000).max_num_batched_tokens == 2048


def test_what_is_given_is_kept():
    found = settings("0.11.0", memory_utilization=0.5, max_num_seqs=7, max_num_batched_tokens=99,
                     max_model_len=1234, sampler="flashinfer")  # fmt: skip
    assert (found.memory_utilization, found.max_num_seqs) == (0.5, 7)
    assert (found.max_num_batched_tokens, found.max_model_len) == (99, 1234)
    assert found.sampler_bytes.value == 14


@pytest.mark.parametrize(
    ("memory_gib", "ranks", "reserved_gib"),
    [
        (79.2, 1, 13.125),  # 512 + 1.5 * 8192 + 2 * 256 MiB and an eighth of a GiB a rank
        (79.2, 8, 14.5),  # 512 graphs from TP 4 on
        (191.7, 8, 26.5),  # 512 + 1.5 * 16384 + 2 * 512 MiB and a GiB
        (23.6, 1, 3.671875),  # 512 + 1.5 * 2048 + 2 * 24 + 128 MiB
        (44.4, 4, 7.3125),  # 512 + 1.5 * 4096 + 2 * 160 + 512 MiB
    ],
)
def test_sglang_leaves_a_reserve_that_grows_with_its_batches(memory_gib, ranks, reserved_gib):
    on = replace(device("h100"), memory_gib=memory_gib)
    found = settings(on=on, ranks=ranks, engine="sglang")
    assert found.memory_utilization == round(1 - reserved_gib / memory_gib, 3)


@pytest.mark.parametrize(
    ("version", "memory_gib", "split", "reserved_gib"),
    [
        # server_args.py by hand, MiB. 0.5.6: 512 + 8192 * 1.5 + 512 * (2 + 8 * 3 + 8 * 1.5) + 1024
        ("0.5.6", 79.2, Split(8, attention_data_parallel=8), 32.5),
        # 512 + 8192 * 1.5 + 256 * (2 + 2 * 3) + 256: graphs of 256 sequences take no more
        ("0.5.6", 79.2, Split(2, attention_data_parallel=2), 14.75),
        # 512 + 2048 * 1.5 + 24 or 16 * 2 + 128
        ("0.5.5", 23.6, Split(1), 3.671875),
        ("0.5.3", 23.6, Split(1), 3.65625),
        ("0.5.2", 79.2, Split(8), 9.5 + 8 / 2),
        ("0.5.2", 139.8, Split(8, attention_data_parallel=8), 12 + 8 / 2 + 4),
        ("0.4.9", 23.6, Split(4), 2.8 + 4 / 10),
        ("0.4.9", 191.7, Split(8), 32),
    ],
)
def test_the_reserve_of_sglang_follows_its_version(version, memory_gib, split, reserved_gib):
    on = replace(device("h100"), memory_gib=memory_gib)
    serving = Serving(engine="sglang", engine_version=version)
    found = engine_settings(serving, on, split, 4096.0)
    assert found.memory_utilization == round(1 - reserved_gib / memory_gib, 3)


@pytest.mark.parametrize(
    ("version", "on", "sampler", "low", "high"),
    [
        ("0.33.0", "h100", "flashinfer", 10.0, 17.0),
        ("0.33.0", "mi300x", "triton", 10.0, 39.6),
        ("0.17.1", "mi300x", "triton", 10.0, 39.6),
        ("0.11.0", "mi300x", "pytorch", 38.4, 39.6),
        ("0.11.0", "h100", "pytorch", 10.0, 39.6),
    ],
)
def test_flashinfer_samples_on_nvidia_alone(version, on, sampler, low, high):
    found = settings(version, on)
    assert found.sampler == sampler
    assert (found.sampler_bytes.low, found.sampler_bytes.high) == (low, high)


def test_a_sampler_that_does_not_run_on_a_device_is_refused_there():
    found = answer(on=(device("h100"), device("mi300x")), serving={"sampler": "flashinfer"})
    assert {each["code"] for each in found["rejected"] if each["hardware"] == "mi300x"} == {
        "sampler_not_on_device"
    }
    assert {each["hardware"] for each in found["candidates"]} == {"h100"}


@pytest.mark.parametrize(
    ("generation", "memory_gib", "seqs", "tokens"),
    [("tpu_v6e", 31.5, 256, 1024), ("tpu_v5e", 15.8, 256, 512), ("tpu_v5p", 93.6, 256, 256)],
)
def test_a_tpu_has_limits_of_its_generation(generation, memory_gib, seqs, tokens):
    on = replace(device("h100"), vendor="google", generation=generation, memory_gib=memory_gib)
    found = settings("0.33.0", on)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (seqs, tokens)


def test_no_more_sequences_run_than_a_step_has_tokens():
    """vLLM lowers its default since 0.10.1 and refuses what is asked for (config/scheduler.py)."""
    assert settings("0.33.0", max_num_batched_tokens=512).max_num_seqs == 512
    assert settings("0.10.0", max_num_batched_tokens=512).max_num_seqs == 1024
    assert settings(engine="sglang", max_num_batched_tokens=512).max_num_seqs == 2048
    for version, seqs in (("0.33.0", 1024), ("0.10.0", None), ("0.33.0", None)):
        serving = {"engine_version": version, "max_num_batched_tokens": 512, "max_num_seqs": seqs}
        found = answer(serving=serving, limits={"tensor_parallel": (1,)})
        if (version, seqs) == ("0.33.0", None):
            assert found["candidates"]
        else:
            assert [each["code"] for each in found["rejected"]] == ["more_seqs_than_tokens"]
            assert "max_num_seqs to 512" in found["rejected"][0]["remedy"]


@pytest.mark.parametrize(
    ("version", "warned"),
    [("0.33.0", False), ("0.33", False), (None, False), ("0.33.1", True), ("1.0", True)],
)
def test_a_version_newer_than_any_that_was_read_is_told(version, warned):
    codes = [each["code"] for each in answer(serving={"engine_version": version})["warnings"]]
    assert ("engine_version_newer_than_known" in codes) == warned


@pytest.mark.parametrize(
    "version", ["0.10.1.1", "0.8.5.post1", "0.29.0rc1", "v0.11", "0.11.0+cu129", "0.12.0.dev3"]
)
def test_versions_are_read_as_they_are_published(version):
    assert serving_faults(Serving(engine_version=version)) == []


@pytest.mark.parametrize(
    "version", ["0.11 ;drop", "0.11\n", "0.11.", "٠.١١", "", "0.11.0.0.0", "9" * 5000, "-1", "1e3"]
)
def test_what_is_no_version_is_refused(version):
    (fault,) = serving_faults(Serving(engine_version=version))
    assert (fault.pointer, fault.nearest) == ("/serving/engine_version", "0.33")


def test_a_version_may_leave_out_its_zeros():
    for engine, short, full in (("tensorrt_llm", "1", "1.0"), ("vllm", "0.33", "0.33.0")):
        assert serving_faults(Serving(engine=engine, engine_version=short)) == []
        found = [settings(each, engine=engine) for each in (short, full)]
        assert replace(found[0], version=full) == found[1]


@pytest.mark.parametrize(
    ("version", "even"),
    [("0.11.2", 1.0), ("0.12.0", 1.25), ("0.17.1", 1.25), ("0.18.1", 1.5), ("0.33.0", 1.5)],
)
def test_groups_of_layers_are_evened_out_since(version, even):
    """kv_cache_utils.py, `_get_kv_cache_groups_uniform_page_size`."""
    assert settings(version).even_group == even


@pytest.mark.parametrize(
    ("serving", "pointer"),
    [
        (Serving(engine_version="0.4.1"), "/serving/engine_version"),
        (Serving(engine_version="latest"), "/serving/engine_version"),
        (Serving(engine="sglang", engine_version="0.4.6"), "/serving/engine_version"),
        (Serving(engine="generic", engine_version="1.0"), "/serving/engine_version"),
        (Serving(engine="sglang", sampler="pytorch"), "/serving/sampler"),
    ],
)
def test_what_no_row_knows_is_refused(serving, pointer):
    assert [fault.pointer for fault in serving_faults(serving)] == [pointer]


def test_the_sampler_takes_its_peak_from_the_kv_cache():
    """1,024 sequences of 128,256 logits at 38.6 and at 14 bytes: 4.72 and 1.71 GiB."""
    found = {}
    for sampler in ("pytorch", "flashinfer"):
        plan = answer("llama-3.1-8b", "h100", workload(1000, 200, saturate=True),
                      limits={"tensor_parallel": (1,)},
                      serving={"sampler": sampler})  # fmt: skip
        found[sampler] = plan["candidates"][0]["memory"]
    assert found["pytorch"]["activation_gib"] == pytest.approx(4.721, abs=0.001)
    assert found["flashinfer"]["activation_gib"] == pytest.approx(1.712, abs=0.001)
    gained = found["flashinfer"]["kv_cache_gib"] - found["pytorch"]["kv_cache_gib"]
    assert gained == pytest.approx(4.721 - 1.712, abs=0.001)
