/** Node list: the entities of the map as a list that the keyboard drives. */

import { h, quoted, replace } from "./dom.js";

/** Entries in the list; of more, a search narrows it. */
const ENTRIES_MAX = 300;

/**
 * Return the list. Arrow keys move through it, Enter pins, Escape unpins.
 * @param {{hover: (index: number) => void, pin: (index: number) => void, clear: () => void}} map
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
    else if ((event.key === "Enter" || event.key === " ") && at >= 0) pin(shown[at]);
    else if (event.key === "Escape") clear();
    else return;
    event.preventDefault();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "Enter") return;
    event.preventDefault();
    box.focus();
    if (event.key === "Enter" && shown.length) pin(shown[at]);
  });
  box.addEventListener("focus", () => { if (at < 0 && shown.length) move(0); });
  box.addEventListener("pointerover", (event) => {
    const entry = event.target.closest("[data-entry]");
    if (entry) move(Number(entry.dataset.entry), false);
  });
  box.addEventListener("pointerleave", () => hover(-1));
  box.addEventListener("click", (event) => {
    const entry = event.target.closest("[data-entry]");
    if (entry) pin(shown[Number(entry.dataset.entry)]);
  });

  function move(to, scroll = true) {
    at = Math.min(shown.length - 1, Math.max(0, to));
    const entry = box.children[at];
    if (!entry) return;
    box.setAttribute("aria-activedescendant", entry.id);
    if (scroll) entry.scrollIntoView({ block: "nearest" });
    hover(shown[at]);
  }

  function show() {
    const wanted = search.value.trim().toLowerCase();
    shown = nodes.map((_, index) => index)
      .filter((index) => nodes[index].kind !== "value" && nodes[index].label.toLowerCase().includes(wanted))
      .slice(0, ENTRIES_MAX);
    at = -1;
    box.removeAttribute("aria-activedescendant");
    replace(box, shown.length ? shown.map((index, entry) => h("div", {
      role: "option", id: `entry-${entry}`, "data-entry": entry, "aria-selected": "false",
    }, quoted(nodes[index].label), h("span", { class: "hint" }, ` ${nodes[index].type}`))) : [
      h("div", { role: "option", "aria-selected": "false", "aria-disabled": "true" }, "No entity has this name"),
    ]);
  }

  return {
    element: h("div", { class: "nodes" }, h("label", { for: "node-search" }, "Entities"), search, box,
      h("p", { class: "hint", id: "node-hint" }, "Arrow keys move, Enter pins, Escape unpins.")),
    fill(next) {
      nodes = next;
      show();
    },
    /** Show which entry is active and which one is pinned. */
    mark(active, pinned) {
      box.querySelector(".active")?.classList.remove("active");
      box.querySelector("[aria-selected=true]")?.setAttribute("aria-selected", "false");
      box.children[shown.indexOf(active)]?.classList.add("active");
      box.children[shown.indexOf(pinned)]?.setAttribute("aria-selected", "true");
    },
  };
}
