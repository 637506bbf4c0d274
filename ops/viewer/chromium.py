"""Chromium of this machine, and a server in a thread of this process."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from playwright.sync_api import Browser, sync_playwright

from recollect import Recollect
from recollect.api.http.app import create_app
from recollect.api.settings import Settings

_ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")


@contextmanager
def chromium() -> Generator[Browser]:
    """Start the Chromium that is installed."""
    path = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if path is None:
        raise SystemExit("no Chromium; install it with: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_ARGUMENTS))
        yield browser
        browser.close()


@contextmanager
def serving(settings: Settings, *, workers: bool) -> Generator[str]:
    """Serve a data folder; yield the address."""
    app = create_app(Recollect(settings=settings, workers=workers))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, lifespan="on", ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
