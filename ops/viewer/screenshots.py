"""Screenshots of the viewer: each view with the demo conversation, light, dark and on a phone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from demo_memory import NAMESPACE
from palette_png import with_palette
from playwright.sync_api import Browser, Page

#: Pictures of the documentation are shown at 830 pixels; a wider window only makes their text smaller.
_DESKTOP, _PHONE = (1120, 760), (390, 844)
_BYTES_MAX = 120_000
_QUESTION = "Where does Tobias work now?"


class Picture(NamedTuple):
    """One picture."""

    name: str
    view: str
    scheme: Any
    size: tuple[int, int]
    #: What is done before it is taken.
    prepare: Callable[[Page], None]
    parameters: str = ""


def take_screenshots(browser: Browser, address: str, folder: Path) -> None:
    """Write the pictures to `folder`."""
    for picture in _PICTURES:
        width, height = picture.size
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=picture.scheme,
            reduced_motion="reduce",
            locale="en-GB",
            timezone_id="UTC",
        )
        page = context.new_page()
        page.goto(f"{address}/#{picture.view}?namespace={NAMESPACE}{picture.parameters}")
        page.wait_for_selector(f"body[data-ready={picture.view}]", timeout=60_000)
        picture.prepare(page)
        path = folder / f"viewer-{picture.name}.png"
        path.write_bytes(with_palette(context, page.screenshot()))
        context.close()
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes{' (over the limit)' if size > _BYTES_MAX else ''}")


def _node(page: Page, label: str) -> Any:
    """Return the node of an entity by its place in the list, which is that of the map."""
    labels = [text.rpartition(" ")[0].strip() for text in page.locator("[role=option]").all_inner_texts()]
    return page.locator("g.node").nth(labels.index(label))


def _nothing(_page: Page) -> None:
    return


def _path(page: Page) -> None:
    _node(page, "Femke").click()
    _node(page, "Ines").hover()


def _summary(page: Page) -> None:
    page.locator("button.bar").nth(5).click()
    page.locator(".episode.distilled summary, .episode.compressed summary").first.click()
    page.locator(".sources li").first.wait_for()


def _opened(page: Page) -> None:
    page.locator(".row", has_text="resident of Lark Street").locator(".said").click()
    page.locator(".sources li").first.wait_for()
    page.mouse.move(0, 0)


def _corrected(page: Page) -> None:
    row = page.locator(".row", has_text="lives in Utrecht")
    row.locator(".more").click()
    row.get_by_role("button", name="Correct").click()
    row.get_by_label("Correct value").fill("Lombok, Utrecht")
    row.get_by_role("button", name="Correct it").click()
    page.locator(".written h3").wait_for()
    page.evaluate("scrollTo(0, 0); document.getElementById('status').textContent = ''")


def _asked(page: Page) -> None:
    for _ in range(20):
        page.fill("textarea[name=query]", _QUESTION)
        page.get_by_label("Items").fill("4")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator(".items li").first.wait_for()
        # The model loads, and a busy machine is late.
        if not page.locator(".warning").count():
            break
        page.wait_for_timeout(1_000)
    page.get_by_text("Why", exact=True).first.click()
    page.evaluate("scrollTo(0, 0)")


_PICTURES = (
    Picture("profile", "profile", "light", _DESKTOP, _opened),
    Picture("map", "map", "light", _DESKTOP, _nothing),
    Picture("path", "map", "dark", _DESKTOP, _path),
    Picture("as-of", "map", "light", _DESKTOP, _nothing, "&as_of=120"),
    Picture("timeline", "timeline", "light", _DESKTOP, _summary),
    Picture("ask", "ask", "light", (1120, 1200), _asked),
    Picture("health", "health", "dark", (1120, 1000), _nothing),
    Picture("facts", "facts", "light", (1120, 900), _corrected),
    Picture("phone-map", "map", "dark", _PHONE, _nothing),
    Picture("phone-profile", "profile", "light", _PHONE, _nothing),
)
