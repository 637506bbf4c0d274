/** Memory row: a memory as one line; its messages and the controls that change it open below it. */

import { get, namespacePath } from "./api.js";
import { badge, clippedPassage, errorNote, h, passage, quoted, replace, time } from "./dom.js";

/** What a review decided on a memory that looked like instructions, in words, with the tone of its badge. */
const REVIEWS = {
  waiting: ["waits for a review", "warn"], approve: ["approved", "good"], reject: ["rejected", "plain"], redact: ["instructions removed", "good"],
};

/**
 * @typedef {object} Editor
 * @property {import("./state.js").State} state
 * @property {HTMLElement} written  the note on the last edit, with its undo
 * @property {() => Promise<void>} reload  shows the memories again
 */

/**
 * Return the editor of a view; its `written` has a place in the view.
 * @returns {Editor}
 */
export function createEditor(state, reload) {
  return { state, reload, written: h("section", { class: "written", "aria-label": "Last change", tabindex: -1, hidden: true }) };
}

/**
 * Return a row.
 * @param {Editor} editor
 * @param {{id: string, kind: string, line: any[], said: string, review?: string | null, isOver?: boolean}} row
 */
export function memoryRow(editor, { id, kind, line, said, review = null, isOver = false }) {
  const below = h("div", { class: "below", hidden: true });
  const text = h("span", { class: "line", dir: "auto" }, line, review ? [" ", badge(...REVIEWS[review])] : null);
  const buttons = [];
  const opener = (attributes, content, load) => {
    const button = h("button", { type: "button", "aria-expanded": "false", ...attributes, onclick: async () => {
      const isOpen = button.getAttribute("aria-expanded") === "true";
      buttons.forEach((other) => other.setAttribute("aria-expanded", String(other === button && !isOpen)));
      below.hidden = isOpen;
      if (isOpen) return;
      try {
        replace(below, h("p", { class: "hint" }, "Loading"));
        replace(below, await load());
      } catch (error) {
        replace(below, errorNote(error));
      }
    } }, content);
    buttons.push(button);
    return button;
  };
  return h("li", { class: `row${isOver ? " over" : ""}`, "data-id": id }, text,
    opener({ class: "link said" }, said, () => messages(editor, kind, id)),
    editor.state.asOf === null ? opener({ class: "more", "aria-label": `Change: ${text.textContent.slice(0, 80)}`, title: "Change" }, "⋯",
      async () => (await import("./memory_controls.js")).controls(editor, kind, id)) : null, below);
}

async function messages({ state }, kind, id) {
  if (kind === "document") {
    const document = await get(namespacePath(state.namespace, "memories", id), { as_of: state.asOf });
    return h("div", { class: "sources" }, passage(document.text));
  }
  const page = await get(namespacePath(state.namespace, "memories", id, "sources"), { as_of: state.asOf });
  if (!page.items.length) return h("p", { class: "hint" }, "No message: a program noted it, or somebody corrected it here.");
  return h("ol", { class: "sources" }, page.items.map((item) => h("li", {},
    h("p", { class: "meta" }, h("strong", {}, quoted(item.speaker)), " ", time(item.occurred_at)), clippedPassage(item.text))));
}
