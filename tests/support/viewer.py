"""The viewer in a real Chromium, over a real server in a thread of this process."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from recollect import Recollect
from recollect.api.http.app import create_app

#: The names of the browser's command on Debian, Fedora and others.
CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
INSTALL = "no Chromium; install it with: apt-get install chromium"
#: Nothing that would ask another host, and no sandbox, which a container does not allow.
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_LISTENING_SECONDS_MAX = 20


@contextmanager
def browser() -> Generator[Browser]:
    """Start Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        yield chromium
        chromium.close()


@contextmanager
def viewer_server(memory: Recollect) -> Generator[tuple[str, Any]]:
    """Serve a memory; yield the address and the application. The memory is closed at the end."""
    app = create_app(memory)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        deadline = time.monotonic() + _LISTENING_SECONDS_MAX
        while not server.started:
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", app
    finally:
        server.should_exit = True
        thread.join()


class Viewer:
    """A tab with the viewer, which collects what must not happen.

    Parameters:
        scheme: light or dark.
        size: width and height in pixels.
    """

    def __init__(self, chromium: Browser, address: str, *, scheme: Any = "light", size: tuple[int, int]) -> None:
        self.address = address
        self._scheme = scheme
        self._host = urlsplit(address).netloc
        self._context = chromium.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
        )
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(10_000)
        #: Messages of the console above information, uncaught errors, and requests to other hosts.
        self.faults: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self._on_console(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.page.on("request", lambda request: self._on_request(request.url))

    def open(self, view: str, namespace: str, **parameters: object) -> Page:
        """Open a view and wait until its data is shown."""
        query = "&".join(f"{name}={value}" for name, value in {"namespace": namespace, **parameters}.items())
        # From the page itself only the part after # would change, and the state of the last view would wait for it.
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#{view}?{query}")
        self.page.wait_for_selector(f"body[data-ready={view}]")
        return self.page

    def violations(self) -> Sequence[str]:
        """Return the serious and critical findings of axe on the page as it is."""
        # The file is the content of axe-core; the package's own class has no types.
        self.page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        return self._findings("axe.run()")

    def colour_violations(self, scheme: Any) -> Sequence[str]:
        """Return the findings on colours in another scheme, after `violations`: only styles depend on the scheme."""
        self.page.emulate_media(color_scheme=scheme)
        found = self._findings("axe.run({runOnly: ['color-contrast', 'link-in-text-block']})")
        self.page.emulate_media(color_scheme=self._scheme)
        return found

    def _findings(self, run: str) -> Sequence[str]:
        found: list[dict[str, Any]] = self.page.evaluate(f"{run}.then((result) => result.violations)")
        return [
            f"{finding['id']}: {finding['nodes'][0]['html']}"
            for finding in found
            if finding["impact"] in ("serious", "critical")
        ]

    def close(self) -> None:
        self._context.close()

    def _on_console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.faults.append(f"console: {text}")

    def _on_request(self, url: str) -> None:
        if url == "about:blank":
            return
        self.requests.append(url)
        if urlsplit(url).netloc != self._host:
            self.faults.append(f"request to another host: {url}")


def opened(page: Page, text: str) -> Locator:
    """Return the row of a memory with its controls."""
    row = page.locator(".row", has_text=text)
    row.locator(".more").click()
    row.get_by_role("button", name="Pin", exact=True).wait_for()
    return row
