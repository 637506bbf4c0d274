/** Memory controls: the forms that change a memory by events, and the undo of the last change. Loaded when first opened. */

import { get, namespacePath, post } from "./api.js";
import { announce, append, dateText, enterSends, errorNote, field, h, number, quoted, replace } from "./dom.js";
import { correctable, correction, ending, forgetting, HISTORIES, OUTCOMES, pinning, removal, statement, statusText } from "./edits.js";
import { decisionButtons } from "./review.js";

/** @typedef {import("./memory_row.js").Editor} Editor */

/** Return the controls of a memory: correct, end, pin, forget and its history, or the decisions of a review. */
export async function controls(editor, kind, id) {
  const memory = await get(namespacePath(editor.state.namespace, "memories", id));
  const forms = h("div", { class: "forms" });
  const decisions = memory.review === "waiting" ? decisionButtons(editor.state, memory, editor.reload, forms) : null;
  if (memory.status === "quarantined") return h("div", {}, decisions, forms);
  const open = (content) => {
    replace(forms, content);
    forms.querySelector("input, textarea")?.focus();
  };
  const submit = (edit) => apply(editor, edit, forms);
  const button = (text, onclick) => h("button", { type: "button", class: "quiet", onclick }, text);
  const form = (text, content, onsubmit) => open(editForm(forms, text, content, onsubmit));
  const holds = memory.status === "active" || memory.status === "stale";
  const actions = kind === "document"
    ? [button("Remove", () => form("Remove it", h("p", { class: "hint" }, "It is found no more. The log keeps its text."), () => submit(removal(memory)))),
    memory.edit_id ? button("Back to the earlier text", () => undo(editor, memory.edit_id, false)) : null]
    : [holds && correctable(kind, memory) !== null ? button("Correct", () => form("Correct it", correctField(kind, memory),
      ({ value }) => submit(correction(kind, memory, value.value.trim())))) : null,
    holds ? button("End", () => form("End it", endFields(), ({ ended, reason }) => submit(
      ending(memory, ended.value ? new Date(ended.value).toISOString() : null, reason.value.trim())))) : null,
    button(memory.pinned ? "Unpin" : "Pin", () => submit(pinning(memory, memory.pinned))),
    button("Forget", () => form("Forget it", forgetFields(), ({ reason }) => submit(forgetting(memory, reason.value.trim())))),
    HISTORIES[kind] ? button("History", async () => {
      try {
        open(await history(editor, kind, memory));
      } catch (error) {
        open(errorNote(error));
      }
    }) : null];
  return h("div", {}, decisions, h("p", { class: "actions" }, actions), forms);
}

function editForm(forms, submitText, content, onsubmit) {
  return h("form", { class: "edit", onsubmit: (event) => {
    event.preventDefault();
    onsubmit(event.target.elements);
  } }, content, h("p", { class: "actions" }, h("button", { type: "submit" }, submitText),
    h("button", { type: "button", class: "quiet", onclick: () => {
      forms.closest(".row").querySelector(".more").focus();
      replace(forms);
    } }, "Cancel")));
}

function correctField(kind, memory) {
  const label = kind === "procedure" ? "Steps, one in a line (Shift+Enter)" : "Correct value";
  return field(label, enterSends(h("textarea", { name: "value", rows: 2, required: true }, correctable(kind, memory))));
}

function endFields() {
  return [h("p", { class: "hint" }, "It was true until then. What was never true is corrected or forgotten."),
    field("Ended (empty: now)", h("input", { type: "datetime-local", name: "ended" })),
    field("Reason (optional)", h("input", { name: "reason" }))];
}

function forgetFields() {
  return [h("p", { class: "hint" }, "No list and no retrieval returns it afterwards. The log keeps the bytes until they are erased."),
    field("Reason (optional)", h("input", { name: "reason" }))];
}

async function history({ state }, kind, memory) {
  const page = await get(namespacePath(state.namespace, HISTORIES[kind], memory.id, "history"));
  return h("ol", { class: "history" }, page.items.map((item) => h("li", { class: item.id === memory.id ? "this" : null },
    quoted(statement(kind, item).at(-1)), ` · since ${dateText(item.valid_from)}${statusText(item)}`)));
}

/** Write the event of an edit, show it with a button that undoes it, and show the memories as they are now. */
async function apply(editor, draft, forms) {
  try {
    const answer = await post(namespacePath(editor.state.namespace, "events"), draft);
    await showWritten(editor, draft, answer.events[0], OUTCOMES[draft.type], false);
  } catch (error) {
    append(forms, [errorNote(error)]);
  }
}

/** Undo the event of an edit, or of an undo, and show the memories as they are now. */
async function undo(editor, eventId, isUndone) {
  try {
    const undone = await post(namespacePath(editor.state.namespace, "undo"), { event_id: eventId });
    const draft = { type: "edit.undone", payload: { event_id: undone.undoes } };
    await showWritten(editor, draft, undone, isUndone ? "Made again" : "Undone: all is as before", !isUndone);
  } catch (error) {
    append(editor.written, [errorNote(error)]);
  }
}

async function showWritten(editor, draft, recorded, words, isUndone) {
  const { written } = editor;
  written.hidden = false;
  replace(written, h("h3", {}, words),
    h("button", { type: "button", onclick: () => undo(editor, recorded.id, isUndone) }, isUndone ? "Make the edit again" : "Undo"),
  h("details", {}, h("summary", {}, `Recorded as version ${number(recorded.version)}`),
    h("pre", { tabindex: 0 }, JSON.stringify({ id: recorded.id, version: recorded.version, ...draft }, null, 2))));
  announce(words);
  await editor.reload();
  written.focus();
}
