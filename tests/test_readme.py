"""README.md is run: its commands, pasted beside a new service, print what it shows.

`python -m tests.test_readme` writes the answers that it shows anew.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ADDRESS = "127.0.0.1:8000"
LEFT_OUT = "..."
"""A line of a shown answer that stands for any number of lines."""

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

CURL = """\
import sys, urllib.request
arguments, headers, body, url = iter(sys.argv[1:]), {}, None, None
for each in arguments:
    if each == "-H":
        name, _, value = next(arguments).partition(": ")
        headers[name] = value
    elif each == "-d":
        body = next(arguments).encode()
    elif each != "-s":
        assert not each.startswith("-"), each
        url = each
with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
    sys.stdout.buffer.write(answer.read())
"""
"""Does what the walk-through wants of curl, on a machine that has none."""


@dataclass(frozen=True)
class Example:
    """Commands of README.md, with what they are shown to print (and where that stands)."""

    commands: str
    language: str
    shown: str
    start: int
    end: int


def examples() -> list[Example]:
    """What `make run` prints, and every block of the walk-through."""
    text = README.read_text(encoding="utf-8")
    blocks = list(_FENCE.finditer(text))
    walk_through = text.index("## Walk-through"), text.index("## Endpoints")
    found = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        in_walk_through = walk_through[0] < block.start() < walk_through[1]
        if block[1] != "sh" or not (in_walk_through or block[2] == "make run\n"):
            continue
        if following is not None and following[1] in ("json", "text"):
            span = following.span(2)
            found.append(Example(block[2], following[1], following[2], *span))
        else:
            found.append(Example(block[2], "text", "", block.end(), block.end()))
    return found


EXAMPLES = examples()


@contextmanager
def service(directory: Path) -> Iterator[int]:
    """What `make run` starts once the environment is there; the port it listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"ADVISOR_PORT": str(port), "ADVISOR_LOG_LEVEL": "ERROR"}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "advisor", "serve"],
            env=environment(directory) | settings,
            cwd=directory,
            stdout=log,
            stderr=log,
        )
    try:
        _wait_for(f"http://127.0.0.1:{port}/readyz", process, directory / "log")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=40)


def environment(directory: Path) -> dict[str, str]:
    """Ours, without what would change what is printed or where requests go."""
    changing = ("ADVISOR_", "FORCE_COLOR", "TTY_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(changing)}
    return kept | {
        "PATH": f"{directory}/bin:{kept['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "no_proxy": "*",
    }


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    past_any_proxy = build_opener(ProxyHandler({}))
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            with past_any_proxy.open(url, timeout=5):
                return
        except OSError:
            time.sleep(0.1)


def walk_through(directory: Path) -> list[str]:
    """What each example prints, all of them pasted into one terminal beside a new service."""
    _make_environment(directory)
    with service(directory) as port:
        first, *others = EXAMPLES
        assert first.commands == "make run\n"
        script = "".join(f"{each.commands}\nprintf '\\036'\n" for each in others)
        done = subprocess.run(
            ["bash", "-s"],
            input=script.replace(ADDRESS, f"127.0.0.1:{port}"),
            env=environment(directory),
            cwd=directory,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        *printed, rest = done.stdout.split("\036")
        assert rest == ""
        log = (directory / "log").read_text()
    started = log[: log.index("\n", log.index("Documentation: ")) + 1]
    return [each.replace(f"127.0.0.1:{port}", ADDRESS) for each in (started, *printed)]


def _make_environment(directory: Path) -> None:
    """The commands that `make run` installs and, where it is missing, curl."""
    (directory / ".venv" / "bin").mkdir(parents=True)
    (directory / "bin").mkdir()
    python = f"#!/bin/sh\nexec {sys.executable} "
    _executable(directory / ".venv/bin/python", f'{python}"$@"\n')
    _executable(directory / ".venv/bin/advisor", f'{python}-m advisor "$@"\n')
    if shutil.which("curl") is None:
        _executable(directory / "bin/curl", f"#!{sys.executable}\n{CURL}")


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return walk_through(tmp_path_factory.mktemp("walk-through"))


@pytest.mark.parametrize("index", range(len(EXAMPLES)))
def test_what_the_readme_shows_is_what_its_commands_print(index: int, printed: list[str]):
    example = EXAMPLES[index]
    if example.language == "json":
        shown = json.loads(example.shown)
        assert close(shown, shortened(json.loads(printed[index]), shown))
    else:
        assert matches(printed[index], example.shown), printed[index]


def shortened(answer: Any, shown: Any) -> Any:
    """Those parts of an answer that are shown. KeyError or IndexError where one is not there."""
    if isinstance(shown, dict):
        return {key: shortened(answer[key], part) for key, part in shown.items()}
    if isinstance(shown, list):
        return [shortened(answer[index], part) for index, part in enumerate(shown)]
    return answer


def close(shown: Any, real: Any) -> bool:
    """Whether two answers are the same, up to what processors differ in."""
    if isinstance(shown, dict):
        return all(close(part, real[key]) for key, part in shown.items())
    if isinstance(shown, list):
        return all(map(close, shown, real))
    if isinstance(shown, float) and isinstance(real, float):
        return math.isclose(shown, real, rel_tol=1e-4)
    return bool(shown == real)


def matches(text: str, shown: str) -> bool:
    """Whether `shown` is `text` but for what its lines of dots leave out."""
    parts = [re.escape(part) for part in without_trailing_spaces(shown).split(f"{LEFT_OUT}\n")]
    return bool(re.fullmatch("(?s:.*)".join(parts), without_trailing_spaces(text)))


def without_trailing_spaces(text: str) -> str:
    return re.sub(r" +$", "", text, flags=re.MULTILINE)


def rewrite_readme() -> None:
    """Put what its commands print now in place of what README.md shows."""
    text = README.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        outputs = walk_through(Path(directory))
    for example, output in reversed(list(zip(EXAMPLES, outputs, strict=True))):
        text = text[: example.start] + _shown_anew(example, output) + text[example.end :]
    README.write_text(text, encoding="utf-8")


def _shown_anew(example: Example, output: str) -> str:
    if example.language == "json":
        return laid_out(shortened(json.loads(output), json.loads(example.shown))) + "\n"
    if matches(output, example.shown):
        return example.shown
    return without_trailing_spaces(output)


def laid_out(value: Any, margin: str = "") -> str:
    """JSON with what is short on one line."""
    line = json.dumps(value, ensure_ascii=False)
    inner = f"{margin}  "
    if len(margin + line) <= 88 or not isinstance(value, dict | list):
        return line
    if isinstance(value, list):
        parts = [laid_out(part, inner) for part in value]
        return f"[\n{inner}" + f",\n{inner}".join(parts) + f"\n{margin}]"
    parts = [f"{json.dumps(key)}: {laid_out(part, inner)}" for key, part in value.items()]
    return f"{{\n{inner}" + f",\n{inner}".join(parts) + f"\n{margin}}}"


if __name__ == "__main__":
    rewrite_readme()
