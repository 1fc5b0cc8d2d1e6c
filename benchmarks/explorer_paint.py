"""When the explorer's page of a plan stands in a headless Chromium, with an empty cache.

One worker that has answered before. Milliseconds from the start of the navigation until the first
words of the answer, and until the pictures in the window are drawn, where one goes to them as soon
as they are there; then from a new load, entered, until the words and those pictures are those of
it. The page measures itself: under a debugger, as tests run it, its scripts take twice the time.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from statistics import median
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

from benchmarks.surroundings import catalogued
from tests.browser.chromium import ARGUMENTS, CHROMIUM
from tests.servers import running

OPENINGS = 12
NAMES = ("opened: words", "opened: pictures", "new load: words", "new load: pictures")
TOLD = "/told"
WATCH = Path(__file__).with_suffix(".js").read_bytes()
"""Put into the pages' script; it posts to `TOLD`."""


def main() -> None:
    """Print the medians and the slowest. SystemExit without Chromium."""
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed: `apt-get install chromium`.")
    with tempfile.TemporaryDirectory() as folder:
        url = catalogued(f"sqlite:///{Path(folder) / 'advisor.sqlite3'}")
        with (
            running(url, Path(folder) / "service", {"ADVISOR_WORKERS": "1"}) as service,
            _watched(service.url) as (address, told),
        ):
            _opening(address, told)
            found = [_opening(address, told) for _ in range(OPENINGS)]
    print(f"Explorer, {OPENINGS} openings of a plan, an empty cache each: median, slowest [ms]")
    opened = zip(*(one[0] for one in found), strict=True)
    redrawn = zip(*(each for one in found for each in one[1:]), strict=True)
    for name, each in zip(NAMES, [*opened, *redrawn], strict=True):
        print(f"  {name:20} {median(each):6.0f} {max(each):6.0f}")


def _opening(address: str, told: Queue[Any]) -> list[list[float]]:
    """When words and pictures stood on opening, and how long they took for each other load [ms]."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        arguments = ["--headless=new", "--window-size=1280,900", f"--user-data-dir={profile}"]
        browser = subprocess.Popen(
            [str(CHROMIUM), *ARGUMENTS, *arguments, f"{address}/explorer/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            found: list[list[float]] = told.get(timeout=60)
            return found
        finally:
            browser.kill()
            browser.wait()


@contextmanager
def _watched(url: str) -> Iterator[tuple[str, Queue[Any]]]:
    """The address of the same service with `WATCH` in the pages' script, and what it tells."""
    told: Queue[Any] = Queue()

    class Between(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == TOLD:
                told.put(json.loads(body))
                self.send_response(204)
                self.end_headers()
            else:
                self._pass_on(body)

        def _pass_on(self, body: bytes | None) -> None:
            headers = {
                name: value for name, value in self.headers.items() if name != "Accept-Encoding"
            }
            with urlopen(Request(url + self.path, body, headers)) as answer:
                content = answer.read()
                if "/explorer.js" in self.path:
                    content += WATCH
                self.send_response(answer.status)
                for name in ("Content-Type", "Content-Security-Policy"):
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", told
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
