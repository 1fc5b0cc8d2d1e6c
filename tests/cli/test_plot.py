"""`advisor plan --plot`."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from advisor import plots
from advisor.charts.catalogue import OF_A_PLAN
from tests.cli.conftest import Run
from tests.cli.questions import LOAD, QUESTION


@pytest.mark.parametrize("name", [None, "roofline"])
def test_the_chart_is_written_beside_the_report(advisor: Run, tmp_path: Path, name: str | None):
    target = tmp_path / "out.svg"
    more = () if name is None else ("--chart", name)
    result = advisor(*QUESTION, "--plot", str(target), *more)
    assert result.exit_code == 0
    assert result.stdout == advisor(*QUESTION).stdout
    title = ElementTree.fromstring(target.read_bytes()).findtext(
        "{http://www.w3.org/2000/svg}title"
    )
    assert title is not None
    assert title.startswith("Candidates" if name is None else "Roofline")


def test_a_name_or_an_ending_that_is_not_known_is_refused_before_planning(
    advisor: Run, tmp_path: Path
):
    target = tmp_path / "out.pdf"
    result = advisor(*QUESTION, "--plot", str(target), "--chart", "roof")
    assert result.exit_code == 2
    assert "(nearest: roofline)" in result.stderr
    assert "(allowed: .svg, .png)" in result.stderr
    assert result.stdout == ""
    assert not target.exists()


def test_a_chart_without_a_file_is_refused(advisor: Run):
    result = advisor(*QUESTION, "--chart", "memory")
    assert result.exit_code == 2
    assert "--plot" in result.stderr


def test_without_matplotlib_the_message_says_what_to_install(
    advisor: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(plots, "find_spec", lambda _: None)
    result = advisor(*QUESTION, "--plot", str(tmp_path / "out.png"))
    assert result.exit_code == 2
    assert "inference-advisor[plots]" in result.stderr


def test_a_chart_that_there_is_not_is_said_after_the_report(advisor: Run, tmp_path: Path):
    fixed = ("--tp", "1", "--replicas", "1", "--weights", "fp8")
    question = ("plan", "--model", "meta-llama-3.1-8b", "--hardware", "l40s", *LOAD, *fixed)
    target = str(tmp_path / "out.png")
    result = advisor(*question, "--plot", target, "--chart", "replicas_vs_tensor_parallel")
    assert result.exit_code == 2
    assert "one way" in result.stderr


def test_a_file_that_cannot_be_written_is_a_message(advisor: Run, tmp_path: Path):
    result = advisor(*QUESTION, "--plot", str(tmp_path / "no" / "out.svg"), "--chart", "memory")
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr


def test_the_help_names_every_chart(advisor: Run):
    text = " ".join(advisor("plan", "--help", columns=200).stdout.split())
    assert all(name in text for name in OF_A_PLAN)
