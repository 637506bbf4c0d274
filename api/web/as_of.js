/**
 * As of: a slider over the versions of a namespace; the views show what the memory knew at the chosen one. What was true
 * at a time is another question: a past that was imported later is known since the import. The profile answers it.
 */

import { get, namespacePath } from "./api.js";
import { dateText, h, number, replace, timeText } from "./dom.js";
import { address } from "./state.js";

/** Milliseconds without a movement after which a moment is shown: each one may build a read model of the past. */
const REST_MS = 250;

/**
 * Return the control in `element`; `choose` is called with a version, or null for now.
 * @param {HTMLElement} element
 * @param {(asOf: number | null) => void} choose
 */
export function createMoments(element, choose) {
  let namespace = null;
  /** @type {{version: number, type: string, recorded_at: string, occurred_at: string}[]} */
  let items = [];
  let head = 0;
  let timer = 0;
  const slider = h("input", { type: "range", id: "as-of", min: 0, step: 1, "aria-describedby": "as-of-text" });
  const text = h("output", { id: "as-of-text", for: "as-of" });
  const now = h("button", { type: "button", class: "quiet", onclick: () => choose(null) }, "Now");
  const trueThen = h("a", { hidden: true }, "What was true then?");
  replace(element, h("label", { for: "as-of" }, "As known on"), slider, now, text, trueThen);

  slider.addEventListener("input", () => {
    describe(Number(slider.value));
    clearTimeout(timer);
    timer = setTimeout(() => choose(versionAt(Number(slider.value))), REST_MS);
  });

  function versionAt(index) {
    return index >= items.length - 1 ? null : items[index].version;
  }

  function describe(index) {
    const item = items[index];
    const isNow = index >= items.length - 1;
    now.disabled = isNow;
    element.classList.toggle("past", !isNow);
    const said = item && dateText(item.occurred_at);
    const words = !item ? "no events" : isNow ? `now · version ${number(head)}`
      : `${timeText(item.recorded_at)} · version ${number(item.version)} of ${number(head)}${said === dateText(item.recorded_at) ? "" : `, an event of ${said}`}`;
    trueThen.hidden = isNow;
    if (!isNow) {
      const parameters = new URLSearchParams({ true_on: item.occurred_at.slice(0, 10) });
      trueThen.setAttribute("href", address({ view: "profile", namespace, asOf: null, parameters }));
    }
    text.textContent = words;
    slider.setAttribute("aria-valuetext", words);
  }

  async function load(state) {
    const page = await get(namespacePath(state.namespace, "moments"));
    namespace = state.namespace;
    ({ items, version: head } = page);
    place(state.asOf);
  }

  function place(asOf) {
    if (asOf !== null && !items.some((item) => item.version === asOf)) {
      // A link may name a version between two moments.
      const later = items.findIndex((item) => item.version > asOf);
      const near = items[Math.max(0, later - 1)];
      if (near && asOf < head) items.splice(later, 0, { ...near, version: asOf });
    }
    slider.max = String(Math.max(0, items.length - 1));
    const index = asOf === null ? items.length - 1 : items.findIndex((item) => item.version === asOf);
    slider.value = String(index < 0 ? items.length - 1 : index);
    slider.disabled = items.length < 2;
    describe(Number(slider.value));
  }

  return {
    /** Show the moments of a namespace, which are loaded once; return its version, or null where none can be chosen. */
    async show(state) {
      element.hidden = state.namespace === null || state.view === "health" || state.view === "review";
      if (element.hidden) return null;
      if (namespace !== state.namespace) await load(state);
      else place(state.asOf);
      element.hidden = head === 0;
      return head;
    },
    /** Load the moments again, after an event was written. */
    refresh: load,
  };
}
