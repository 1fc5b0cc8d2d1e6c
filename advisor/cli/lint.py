"""`advisor lint`: the terminology checker over files and folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track

from advisor.cli.lint_formats import FORMATS, Report
from advisor.core.terminology.check import check_all
from advisor.core.terminology.findings import Finding
from advisor.core.terminology.vocabulary import Vocabulary

LARGEST_FILE = 2_000_000
"""Bytes; what is larger is data, or was generated."""
MANY_FILES = 20
"""From so many on a bar shows how far it is."""
_SEVERITIES = ("info", "warning")
_VARIABLE = "ADVISOR_TERMINOLOGY_RULES"


class Skipped(Exception):
    """A file that is not read; the text says why. It is a fault unless no such files are read."""

    def __init__(self, reason: str, *, is_fault: bool = True) -> None:
        super().__init__(reason)
        self.is_fault = is_fault


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--format", "output_format", type=click.Choice(list(FORMATS)), default="lines",
    show_default=True, help="Of what is printed.",
)  # fmt: skip
@click.option(
    "--min-severity", type=click.Choice(_SEVERITIES), default="info", show_default=True,
    help="Least severe findings reported.",
)  # fmt: skip
@click.option(
    "--rules", "rules_file", metavar="FILE", default=lambda: os.environ.get(_VARIABLE, ""),
    help=f"TOML file with rules and words of your own.  [default: ${_VARIABLE}]",
)  # fmt: skip
@click.option("--quiet", is_flag=True, help="No progress, and no list of skipped files.")
@click.pass_context
def lint(
    ctx: click.Context, paths: Sequence[Path], output_format: str, min_severity: str,
    rules_file: str, quiet: bool,
) -> None:  # fmt: skip
    """Find terms that readers take in more than one way, in files and folders.

    Markdown, reStructuredText, HTML, plain text and the comments of source code are read; `-` reads
    plain text from standard input. Skipped files are named on standard error.

    Exit status: 0 when nothing needs an answer, 1 when something does, 2 when a file that was named
    cannot be read. A comment `advisor-disable-next-line RULE` switches a rule off.
    """
    from advisor.service.rules_file import rules_of

    vocabulary = rules_of(rules_file, "--rules")
    found, skipped, unread = _found(paths, vocabulary, quiet=quiet)
    least = _SEVERITIES.index(min_severity)
    report = Report(
        [each for each in found if _SEVERITIES.index(each[1].severity) >= least],
        skipped, vocabulary, unread,
    )  # fmt: skip
    text = FORMATS[output_format](report)
    if text:
        click.echo(text)
    if not quiet:
        for path, reason in skipped.items():
            click.echo(f"{path}: skipped: {reason}", err=True)
    ctx.exit(2 if unread.intersection(map(str, paths)) else 1 if report.flagged else 0)


def _found(
    paths: Sequence[Path], vocabulary: Vocabulary, *, quiet: bool
) -> tuple[list[tuple[str, Finding]], dict[str, str], set[str]]:  # fmt: skip
    """Findings by file, what was skipped and why, and which files could not be read."""
    found: list[tuple[str, Finding]] = []
    skipped: dict[str, str] = {}
    unread: set[str] = set()
    for path in _with_progress(list(_files(paths)), quiet=quiet):
        try:
            findings, warning = _checked(path, vocabulary)
        except Skipped as reason:
            skipped[str(path)] = str(reason)
            if reason.is_fault:
                unread.add(str(path))
            continue
        found += [(str(path), each) for each in findings]
        if warning:
            skipped[str(path)] = warning
    return found, skipped, unread


def _with_progress(files: Sequence[Path], *, quiet: bool) -> Iterable[Path]:
    if quiet or len(files) < MANY_FILES:
        return files
    return track(files, "Reading", console=Console(stderr=True), transient=True)


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    """The files named and those below the folders named, hidden ones left aside."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(each for each in folders if not each.startswith("."))
            yield from (Path(folder) / name for name in sorted(names) if not name.startswith("."))


def _checked(path: Path, vocabulary: Vocabulary) -> tuple[list[Finding], str]:
    """What is found in a file, and what of it was skipped, if any. Raises `Skipped`."""
    from advisor.documents.reading import format_of, read

    known = ("plain", None) if str(path) == "-" else format_of(path)
    if known is None:
        raise Skipped("no format that is read", is_fault=False)
    text = _text(path)
    document = read(text, *known)
    checked = check_all(text, vocabulary, document.prose)
    notes = []
    if document.coarse_because:
        notes.append(f"its markup, read by lines alone: {document.coarse_because}")
    if checked.unread_from is not None:
        notes.append(f"what follows code point {checked.unread_from}")
    return checked.findings, "; ".join(notes)


def _text(path: Path) -> str:
    try:
        if str(path) == "-":
            data = sys.stdin.buffer.read()
        elif path.stat().st_size > LARGEST_FILE:
            raise Skipped(f"larger than {LARGEST_FILE} bytes")
        else:
            data = path.read_bytes()
    except OSError as error:
        raise Skipped(error.strerror or "it cannot be read") from None
    try:
        # Line ends stay as they are: offsets count them.
        return data.decode("utf-8-sig" if data.startswith(b"\xef\xbb\xbf") else "utf-8")
    except UnicodeDecodeError:
        raise Skipped("not UTF-8") from None
