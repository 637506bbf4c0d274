"""Loading times of the viewer: bytes on the wire, first paint and the time to a usable view, cold and warm."""

from __future__ import annotations

from statistics import median

from playwright.sync_api import Browser, Page

from recollect import Recollect
from recollect.api.settings import Settings

#: Numbers of entities; the relationships are one and a half times as many.
GRAPHS = (300, 1_500)
_ROUNDS = 5
_TYPES = ("person", "location", "organization", "project", "event", "animal", "tool", "concept")
_BATCH = 500
#: Entities that mostly know one another.
_CLUSTER = 25
#: Keeps the moment at which the map can be used.
_WATCH = """
new MutationObserver((changes, observer) => {
    if (document.body?.dataset.ready) {
        globalThis.readyAt ??= performance.now();
        observer.disconnect();
    }
}).observe(document, { subtree: true, childList: true, attributes: true });
"""
_TIMES = """() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, ready: globalThis.readyAt,
    requests: performance.getEntriesByType('resource').length + 1,
    bytes: [...performance.getEntriesByType('resource'), ...performance.getEntriesByType('navigation')]
        .reduce((sum, entry) => sum + entry.transferSize, 0),
})"""


def build_graph(settings: Settings, count: int) -> None:
    """Append a graph of `count` entities in clusters, without random numbers."""
    events = [
        {"type": "entity.described", "payload": {"name": f"Entity {number}", "type": _TYPES[number % len(_TYPES)]}}
        for number in range(count)
    ]
    for number in range(1, count):
        first = number - number % _CLUSTER
        near = first + (number * 7) % max(1, number - first) if number > first else max(0, first - _CLUSTER)
        targets = [near] if number % 2 else [near, (number * 31) % number]
        for target in targets:
            payload = {"source": f"Entity {number}", "type": "knows", "target": f"Entity {target}"}
            events.append({"type": "relationship.stated", "payload": payload})
    with Recollect(settings=settings, workers=False) as memory:
        for start in range(0, len(events), _BATCH):
            memory.append(f"graph-{count}", events[start : start + _BATCH])
        memory.entities(f"graph-{count}", limit=1)


def measure(browser: Browser, address: str, count: int, view: str) -> None:
    """Print the medians of cold and warm loads of a view."""
    cold, warm = list[dict[str, float]](), list[dict[str, float]]()
    for _ in range(_ROUNDS):
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        context.add_init_script(_WATCH)
        page = context.new_page()
        cold.append(_load(page, address, count, view))
        page.goto("about:blank")
        warm.append(_load(page, address, count, view))
        if view == "map":
            warm[-1]["hover"] = _hover_ms(page)
        context.close()
    for name, loads in (("cold", cold), ("warm", warm)):
        figures = {key: median(load[key] for load in loads) for key in loads[0]}
        print(
            f"{view}, {count:>5} entities, {name}: {figures['bytes'] / 1000:.0f} kB in "
            f"{figures['requests']:.0f} requests, "
            f"first contentful paint {figures['paint']:.0f} ms, usable {figures['ready']:.0f} ms"
            + (f", hover {figures['hover']:.0f} ms" if "hover" in figures else "")
        )


def _load(page: Page, address: str, count: int, view: str) -> dict[str, float]:
    page.goto(f"{address}/#{view}?namespace=graph-{count}")
    page.wait_for_selector(f"body[data-ready={view}]", timeout=60_000)
    return page.evaluate(_TIMES)


def _hover_ms(page: Page) -> float:
    """Return the time from the pointer on a node to the next frame."""
    return page.evaluate("""async () => {
        const node = document.querySelectorAll('g.node path')[50];
        const start = performance.now();
        node.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        return performance.now() - start;
    }""")
