/** Node list: the entities and documents of the map as a list that the keyboard drives. */

import { h, quoted, replace } from "./dom.js";

/** Entries in the list; of more, a search narrows it. */
const ENTRIES_MAX = 300;

/**
 * Return the list. Arrow keys move through it, Enter pins, Escape unpins.
 * @param {{hover: (place: number) => void, pin: (place: number, key: string) => void, clear: () => void}} map
 *   a node that is not drawn has the place of the node that stands for it, or -1
 */
export function createNodeList({ hover, pin, clear }) {
  let nodes = [];
  let shown = [];
  let at = -1;
  const search = h("input", {
    type: "search", id: "node-search", placeholder: "Find an entity", autocomplete: "off", oninput: () => show(),
  });
  const box = h("div", {
    class: "node-list", role: "listbox", tabindex: 0, "aria-label": "Entities", "aria-describedby": "node-hint",
  });
  box.addEventListener("keydown", (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -shown.length, End: shown.length };
    if (event.key in steps) move(at + steps[event.key]);
    else if ((event.key === "Enter" || event.key === " ") && at >= 0) choose(at);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    box.focus();
    if (event.key === "Enter" && shown.length) choose(at);
  });
  box.addEventListener("focus", () => { if (at < 0 && shown.length) move(0); });
  box.addEventListener("pointerover", (event) => {
    const entry = event.target.closest("[data-entry]");
    if (entry) move(Number(entry.dataset.entry), false);
  });
  box.addEventListener("pointerleave", () => hover(-1));
  box.addEventListener("click", (event) => {
    const entry = event.target.closest("[data-entry]");
    if (entry) choose(Number(entry.dataset.entry));
  });

  function choose(entry) {
    const { place, key } = shown[entry];
    pin(place, key);
  }

  function move(to, scroll = true) {
    at = Math.min(shown.length - 1, Math.max(0, to));
    const entry = box.children[at];
    if (!entry) return;
    box.setAttribute("aria-activedescendant", entry.id);
    if (scroll) entry.scrollIntoView({ block: "nearest" });
    hover(shown[at].place);
    // Of nodes that are not drawn, several have one place.
    box.querySelector(".active")?.classList.remove("active");
    entry.classList.add("active");
  }

  function show() {
    const wanted = search.value.trim().toLowerCase();
    shown = nodes.filter(({ kind, label }) => kind !== "value" && label.toLowerCase().includes(wanted)).slice(0, ENTRIES_MAX);
    at = -1;
    box.removeAttribute("aria-activedescendant");
    replace(box, shown.length ? shown.map(({ label, type }, entry) => h("div", {
      role: "option", id: `entry-${entry}`, "data-entry": entry, "aria-selected": "false",
    }, quoted(label), h("span", { class: "hint" }, ` ${type}`))) : [
      h("div", { role: "option", "aria-selected": "false", "aria-disabled": "true" }, "No entity has this name"),
    ]);
  }

  return {
    element: h("div", { class: "nodes" }, h("label", { for: "node-search" }, "Entities"), search, box,
      h("p", { class: "hint", id: "node-hint" }, "Arrow keys move, Enter pins, Escape unpins.")),
    fill(next) {
      nodes = next;
      show();
      if (shown.length) return;
      // What was searched for is open now, and has another name.
      search.value = "";
      show();
    },
    /** Show which entry is active and which one is pinned. */
    mark(active, pinned) {
      box.querySelector(".active")?.classList.remove("active");
      box.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      box.children[shown.findIndex(({ place }) => place === active)]?.classList.add("active");
      box.children[shown.findIndex(({ place }) => place === pinned)]?.setAttribute("aria-selected", "true");
    },
  };
}
