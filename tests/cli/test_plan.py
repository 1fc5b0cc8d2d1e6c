"""`advisor plan`: what it asks the planner, and how it ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from advisor.catalog.loader import hardware_documents, hardware_profile, model_profile
from advisor.core.plans import plan
from advisor.core.workload import Length, PlanRequest, Workload
from tests.cli.conftest import Run
from tests.cli.questions import LOAD, ON_H100, QUESTION

CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}


def written(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def test_the_json_output_is_the_planners_answer(advisor: Run):
    result = advisor(*QUESTION, "--slo", "ttft_p95_ms=1000", "--json")
    request = PlanRequest(
        model=model_profile("meta-llama-3.1-70b"),
        hardware=(hardware_profile("h100-sxm-80gb"),),
        workload=Workload(Length(1000), Length(250), request_rate_per_s=4),
        slo={"ttft_p95_ms": 1000},
        weights=("fp8",),
        kv_cache=("fp8",),
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout) == plan(request).as_dict()


KEPT = ("id", "created_at", "profiles", "coefficients_version")
"""What only an answer that is kept has."""
EVERYTHING: dict[str, Any] = {
    "model": "qwen3-30b-a3b",
    "hardware": ["h100-sxm-80gb", "mi300x"],
    "workload": {
        "concurrency": 64,
        "input_tokens": {"mean": 1000, "p95": 2500},
        "output_tokens": 250.5,
    },
    "slo": {"ttft_p95_ms": 1000, "tpot_mean_ms": 50.5},
    "objective": "latency",
    "precision": {"weights": ["bf16", "fp8"], "kv_cache": ["fp8"]},
    "limits": {
        "max_accelerators": 32,
        "max_cost_per_hour": "500.10",
        "tensor_parallel": [2, 4],
        "pipeline_parallel": [1, 2],
        "expert_parallel": [1, 2],
        "replicas": [2, 3],
        "spare_replicas": 1,
    },
    "serving": {"engine": "sglang"},
    "max_candidates": 7,
}
AS_OPTIONS = (
    "--model=qwen3-30b-a3b", "--hardware=h100-sxm-80gb", "--hardware=mi300x", "--concurrency=64",
    "--input-tokens=1000:2500", "--output-tokens=250.5", "--slo=ttft_p95_ms=1000",
    "--slo=tpot_mean_ms=50.5", "--objective=latency", "--weights=bf16,fp8", "--kv-cache=fp8",
    "--max-accelerators=32", "--max-cost-per-hour=500.10", "--tp=2,4", "--pp=1,2", "--ep=1,2",
    "--replicas=2,3", "--spare-replicas=1", "--engine=sglang", "--max-candidates=7",
)  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [AS_OPTIONS, ("--request", "-"), ("--request", "question.json")],
    ids=["options", "standard input", "file"],
)
def test_the_command_line_answers_what_the_api_answers(
    advisor: Run,
    shared_client: FlaskClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "question.json", EVERYTHING)
    answered = shared_client.post("/v1/plans", json=EVERYTHING).get_json()
    result = advisor("plan", *arguments, "--json", stdin=json.dumps(EVERYTHING))
    assert len(answered["candidates"]) == 7
    assert json.loads(result.stdout) == {
        key: value for key, value in answered.items() if key not in KEPT
    }


def test_saturation_is_a_load(advisor: Run):
    load = ("--saturate", "--input-tokens", "1000", "--output-tokens", "250")
    answer = json.loads(advisor(*ON_H100, *load, "--json").stdout)
    assert answer["inputs"]["workload"]["saturate"] is True
    assert answer["recommended"]["load"]["verdict"] == "saturated"


def test_a_model_is_read_from_its_config_and_named_after_the_directory(
    advisor: Run, tmp_path: Path
):
    path = written(tmp_path / "My Model-8B" / "config.json", CONFIG)
    result = advisor("plan", "--model", path, "--hardware", "h100-sxm-80gb", *LOAD, "--json")
    answer = json.loads(result.stdout)
    assert answer["inputs"]["model"] == "my-model-8b"
    assert answer["recommended"]["memory"]["weights_gib"] == pytest.approx(15, abs=0.3)


def test_a_whole_model_profile_keeps_its_name(advisor: Run, tmp_path: Path):
    path = written(tmp_path / "some.json", {"name": "mine", "hf_config": CONFIG})
    result = advisor("plan", "--model", path, "--hardware", "h100-sxm-80gb", *LOAD, "--json")
    assert json.loads(result.stdout)["inputs"]["model"] == "mine"


def test_hardware_is_read_from_a_file_beside_names(advisor: Run, tmp_path: Path):
    shipped = next(d for d in hardware_documents() if d["name"] == "h100-sxm-80gb")
    price = shipped["price"] | {"amount_per_hour": "0.10"}
    path = written(tmp_path / "own.json", shipped | {"name": "mine", "price": price})
    result = advisor(*QUESTION, "--hardware", path, "--json")
    answer = json.loads(result.stdout)
    assert answer["inputs"]["hardware"] == ["h100-sxm-80gb", "mine"]
    assert answer["recommended"]["hardware"] == "mine"
    assert answer["recommended"]["cost"]["per_hour"] == "0.2"


def test_a_cost_limit_is_exact_to_the_cent(advisor: Run):
    cost = json.loads(advisor(*QUESTION, "--json").stdout)["recommended"]["cost"]["per_hour"]
    assert cost == "13.76"
    assert advisor(*QUESTION, "--max-cost-per-hour", "13.76").exit_code == 0
    assert advisor(*QUESTION, "--max-cost-per-hour", "13.75").exit_code == 1


@pytest.mark.parametrize("output", [(), ("--json",)])
def test_the_exit_status_is_1_when_no_plan_can_be_recommended(advisor: Run, output):
    result = advisor(*QUESTION, "--slo", "ttft_p95_ms=5", *output)
    assert result.exit_code == 1
    assert "No plan meets every limit. Nearest:" in result.stdout
    assert result.stderr == ""


REFUSED = {
    "an unknown model": (
        ["plan", "--model", "lama-3.1-70b", "--hardware", "h100-sxm-80gb", *LOAD],
        "/model: Model 'lama-3.1-70b' is not known. (nearest: llama-3.1-70b)",
    ),
    "unknown hardware": (
        [*ON_H100, "--hardware", "h200-smx-141gb", *LOAD],
        "/hardware/1: Hardware 'h200-smx-141gb' is not known. (nearest: h200-sxm-141gb)",
    ),
    "hardware listed twice": (
        [*ON_H100, "--hardware", "h100-sxm-80gb", *LOAD],
        "/hardware/1: h100-sxm-80gb is listed at /hardware/0 already.",
    ),
    "a number out of bounds": (
        [*ON_H100, *LOAD, "--max-accelerators", "0"],
        "/limits/max_accelerators: The number is out of bounds. "
        "(allowed: at least 1, at most 4096)",
    ),
    "a rate of zero": (
        [*ON_H100, "--rate", "0", *LOAD[2:]],
        "/workload/request_rate_per_s: The number is out of bounds. "
        "(allowed: at least 1e-06, at most 1000000)",
    ),
    "a rate that is not a number": (
        [*ON_H100, "--rate", "nan", *LOAD[2:]],
        "/workload/request_rate_per_s: The number is out of bounds. "
        "(allowed: at least 1e-06, at most 1000000)",
    ),
    "a misspelt word": (
        [*ON_H100, *LOAD, "--objective", "costs"],
        "/objective: This is not one of the choices. (nearest: cost)",
    ),
    "a misspelt SLO": (
        [*ON_H100, *LOAD, "--slo", "ttft_p95=1000"],
        "/slo/ttft_p95: This key does not exist. (nearest: ttft_p95_ms)",
    ),
    "an amount that is none": (
        [*ON_H100, *LOAD, "--max-cost-per-hour", "1e3"],
        "/limits/max_cost_per_hour: An amount is a decimal text such as '12.50', or a number.",
    ),
    "a missing file": (
        ["plan", "--model", "missing/config.json", "--hardware", "h100-sxm-80gb", *LOAD],
        "/model: The file cannot be read: No such file or directory.",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_named_on_standard_error(advisor: Run, arguments: list[str], message: str):
    result = advisor(*arguments)
    assert result.exit_code == 2
    assert result.stderr == f"{message}\n"
    assert result.stdout == ""


def test_all_faults_are_named_at_once(advisor: Run):
    result = advisor("plan", "--hardware", "h100-sxm-80gb", "--rate", "4", "--engine", "vlm")
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        "/model: This field is required.",
        "/workload/input_tokens: This field is required.",
        "/workload/output_tokens: This field is required.",
        "/serving/engine: This is not one of the choices. (nearest: vllm)",
    ]


def test_two_kinds_of_load_contradict_each_other(advisor: Run):
    result = advisor(*QUESTION, "--concurrency", "8")
    assert result.exit_code == 2
    assert "/workload/concurrency: Exactly one kind of load is expected, not 2." in result.stderr


def test_an_architecture_that_is_not_known_is_refused_by_its_key(advisor: Run, tmp_path: Path):
    path = written(tmp_path / "config.json", CONFIG | {"model_type": "lama"})
    result = advisor("plan", "--model", path, "--hardware", "h100-sxm-80gb", *LOAD)
    assert result.exit_code == 2
    assert result.stderr.startswith("/model/hf_config/model_type: Model family 'lama' is not known")


MALFORMED = ['{"model": 1, "model": 2}', '{"model": NaN}', "{", "[" * 100_000, "\ufeff{}", "\udcff"]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_a_request_is_read_as_strictly_as_the_api_reads_it(advisor: Run, tmp_path: Path, text: str):
    path = tmp_path / "request.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    result = advisor("plan", "--request", str(path))
    assert result.exit_code == 2
    assert result.stderr.startswith("--request: The ")
    assert result.stdout == ""


@pytest.mark.parametrize("text", ["[]", "1", '"x"', "null"])
def test_a_request_that_is_no_object_is_refused(advisor: Run, text: str):
    result = advisor("plan", "--request", "-", stdin=text)
    assert result.exit_code == 2
    assert result.stderr == "/: An object is expected.\n"


USAGE = {
    "no number of tokens": ("--input-tokens", "1000:x", "N|MEAN:P95"),
    "no degrees": ("--tp", "1,x", "N,N,..."),
    "no bound": ("--slo", "ttft_p95_ms", "KEY=MS"),
    "a bound that is no number": ("--slo", "ttft_p95_ms=fast", "KEY=MS"),
    "no rate": ("--rate", "fast", "--rate"),
}


@pytest.mark.parametrize(("option", "value", "form"), USAGE.values(), ids=USAGE)
def test_a_value_of_another_form_is_refused_with_the_form(
    advisor: Run, option: str, value: str, form: str
):
    result = advisor(*ON_H100, option, value)
    assert result.exit_code == 2
    assert value in result.stderr
    assert form in result.stderr


def test_an_slo_is_given_once(advisor: Run):
    result = advisor(*QUESTION, "--slo", "e2e_p95_ms=1", "--slo", "e2e_p95_ms=2")
    assert result.exit_code == 2
    assert "e2e_p95_ms is given twice" in result.stderr


def test_a_request_file_and_options_for_the_request_exclude_each_other(advisor: Run):
    result = advisor(*QUESTION, "--request", "-", stdin="{}")
    assert result.exit_code == 2
    assert "--request holds the whole question" in result.stderr


def started(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    # The settings are wrong, and the directory is not the project's: neither is looked at.
    environment = os.environ | {"ADVISOR_PORT": "none"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *arguments], env=environment, **(pipes | options))


def test_planning_loads_neither_the_web_framework_nor_a_database(tmp_path: Path):
    script = (
        "import sys; from advisor.cli import main\n"
        f"main({list(QUESTION)!r}, standalone_mode=False)\n"
        "heavy = {'flask', 'sqlalchemy', 'alembic', 'gunicorn', 'psycopg', 'prometheus_client'}\n"
        "print('loaded:', sorted(heavy & sys.modules.keys()))"
    )
    output, errors = started("-c", script).communicate(timeout=60)
    assert errors == b""
    assert output.decode().splitlines()[-1] == "loaded: []"


def test_a_reader_that_goes_away_ends_it_quietly():
    process = started("-m", "advisor", *QUESTION)
    assert process.stdout
    assert process.stderr
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    process.wait(timeout=60)


def test_classes_come_in_a_request_file_and_are_named_in_the_report(advisor: Run, tmp_path: Path):
    classes = [
        {"name": "chat", "weight": 3, "input_tokens": 600, "output_tokens": {"values": [9, 400]}},
        {"name": "search", "weight": 1, "input_tokens": 4000, "output_tokens": 50},
    ]
    body = {
        "model": "meta-llama-3.1-8b", "hardware": ["h100-sxm-80gb"],
        "workload": {"request_rate_per_s": 4, "classes": classes},
    }  # fmt: skip
    result = advisor("plan", "--request", written(tmp_path / "two.json", body))
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "75% chat with 600 input and 9 to 400 output; 25% search with 4000 input" in said
