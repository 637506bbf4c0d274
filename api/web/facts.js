/** Facts: facts, preferences and relationships with validity, sources and history, and the forms that change them. */

import { get, namespacePath, post } from "./api.js";
import { announce, append, badge, dateText, errorNote, field, h, number, passage, quoted, replace, select, time } from "./dom.js";
import { correction, ending, forgetting, isCorrectable, KINDS, pinning, statement } from "./edits.js";

const PAGE_ITEMS = 50;
const STATUSES = ["active", "stale", "superseded", "ended", "invalidated", "rejected"];
/** What holds now: a stale fact was not confirmed for long, and nothing contradicts it. */
const CURRENT = ["active", "stale"];
/** The name of the filter by whom a memory is about. */
const ABOUT = { fact: "subject", preference: "subject", relationship: "source" };

/** Show the facts of a namespace. */
export async function show(content, state, { changed }) {
  const view = {
    state, changed, kind: "fact", status: "current", about: state.parameters.get("subject") ?? "",
    written: h("section", { class: "written", "aria-label": "Event written", tabindex: -1, hidden: true }),
    list: h("div", { class: "memories" }),
    count: h("span", { class: "count" }),
  };
  const reload = () => fill(view);
  const about = h("input", { type: "search", name: "about", value: view.about, placeholder: "anyone", onchange: (event) => {
    view.about = event.target.value.trim();
    reload();
  } });
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Facts"), view.count),
    h("div", { class: "toolbar" },
      field("Kind", select("kind", Object.entries(KINDS), view.kind, (event) => {
        view.kind = event.target.value;
        reload();
      })),
      field("Status", select("status", [["current", "current"], ["", "any"], ...STATUSES.map((status) => [status, status])], view.status, (event) => {
        view.status = event.target.value;
        reload();
      })),
      field("About", about)),
    state.asOf === null ? null : h("p", { class: "hint" }, "This is a past moment; go to now to change something."),
    view.written, view.list,
  ]);
  await fill(view);
}

async function fill(view) {
  replace(view.list);
  await addPage(view, "");
}

async function addPage(view, after) {
  const { state, kind, status, about } = view;
  try {
    const page = await get(namespacePath(state.namespace, KINDS[kind]), {
      status: status === "current" ? CURRENT : status, [ABOUT[kind]]: about, as_of: state.asOf, limit: PAGE_ITEMS, after,
    });
    if (view.kind !== kind || view.status !== status || view.about !== about) return;
    append(view.list, [page.items.map((memory) => card(view, memory))]);
    const count = view.list.querySelectorAll(".memory").length;
    view.count.textContent = `${number(count)}${page.next === null ? "" : " or more"} ${KINDS[kind]}`;
    if (!count) replace(view.list, h("p", { class: "hint" }, "None with these filters at this moment."));
    if (page.next !== null) {
      const more = h("button", { type: "button", class: "quiet", onclick: () => {
        more.remove();
        addPage(view, page.next);
      } }, "More");
      view.list.append(more);
    }
  } catch (error) {
    replace(view.list, errorNote(error));
  }
}

function card(view, memory) {
  const [subject, predicate, object] = statement(view.kind, memory);
  const isOver = memory.status !== "active" && memory.status !== "stale";
  const element = h("article", { class: `memory ${isOver ? "over" : ""}`, "data-id": memory.id });
  const forms = h("div", { class: "forms" });
  append(element, [
    h("h3", {}, quoted(subject), " ", h("span", { class: "predicate" }, quoted(predicate)), " ", quoted(object)),
    h("p", { class: "meta" }, badge(memory.status, isOver ? "warn" : "good"), " ",
      memory.pinned ? [badge("pinned"), " "] : null, validity(memory),
      memory.confidence === undefined ? null : ` · confidence ${Math.round(memory.confidence * 100)} %`,
      memory.source_type ? ` · ${memory.source_type}` : null,
      memory.evidence_count > 1 ? ` · said ${memory.evidence_count} times` : null),
    view.state.asOf === null ? buttons(view, memory, forms, isOver) : null,
    forms,
    disclosure("Sources", () => sourceList(view, memory)),
    view.kind === "relationship" ? null : disclosure("History", () => historyList(view, memory)),
  ]);
  return element;
}

function validity(memory) {
  const from = memory.valid_from ?? memory.created_at;
  return h("span", {}, "from ", time(from, dateText), memory.valid_until ? [" until ", time(memory.valid_until, dateText)]
    : memory.status === "stale" ? [", not confirmed since ", time(memory.stale_at, dateText)] : "");
}

function buttons(view, memory, forms, isOver) {
  const open = (form) => {
    replace(forms, form);
    form.querySelector("input, textarea").focus();
  };
  const submit = (edit) => apply(view, edit, forms);
  const button = (text, onclick) => h("button", { type: "button", class: "quiet", onclick }, text);
  return h("p", { class: "actions" },
    isCorrectable(view.kind) && !isOver ? button("Correct", () => open(correctForm(view, memory, submit, forms))) : null,
    isOver ? null : button("End", () => open(endForm(view, memory, submit, forms))),
    button(memory.pinned ? "Unpin" : "Pin", () => submit(pinning(memory, memory.pinned))),
    button("Forget", () => open(forgetForm(view, memory, submit, forms))));
}

function form(forms, submitText, controls, onsubmit) {
  return h("form", { class: "edit", onsubmit: (event) => {
    event.preventDefault();
    onsubmit(event.target.elements);
  } }, controls, h("button", { type: "submit" }, submitText),
  h("button", { type: "button", class: "quiet", onclick: () => replace(forms) }, "Cancel"));
}

function correctForm(view, memory, submit, forms) {
  const value = view.kind === "fact" ? memory.object : memory.value;
  return form(forms, "Correct it", field("Correct value", h("textarea", { name: "value", rows: 2, required: true }, value)),
    ({ value: control }) => submit(correction(view.kind, memory, control.value.trim())));
}

function endForm(view, memory, submit, forms) {
  return form(forms, "End it", [
    h("p", { class: "hint" }, "It was true until then. What was never true is corrected or forgotten."),
    field("Ended (empty: now)", h("input", { type: "datetime-local", name: "ended" })),
    field("Reason (optional)", h("input", { name: "reason" })),
  ], ({ ended, reason }) => {
    const endedAt = ended.value ? new Date(ended.value).toISOString() : null;
    submit(ending(memory, endedAt, reason.value.trim()));
  });
}

function forgetForm(view, memory, submit, forms) {
  return form(forms, "Forget it", [
    h("p", { class: "hint" }, "No list and no retrieval returns it afterwards. The log keeps the bytes until they are erased."),
    field("Reason (optional)", h("input", { name: "reason" })),
  ], ({ reason }) => submit(forgetting(memory, reason.value.trim())));
}

/** Write the event of an edit, show it with a button that undoes it, and show the memories as they are now. */
async function apply(view, draft, forms) {
  try {
    const answer = await post(namespacePath(view.state.namespace, "events"), draft);
    await showWritten(view, draft, answer.events[0], "Event written", false);
  } catch (error) {
    append(forms, [errorNote(error)]);
  }
}

/** Undo the event of an edit, or of an undo, and show the memories as they are now. */
async function undo(view, eventId, isUndone) {
  try {
    const undone = await post(namespacePath(view.state.namespace, "undo"), { event_id: eventId });
    const draft = { type: "edit.undone", payload: { event_id: undone.undoes } };
    await showWritten(view, draft, undone, isUndone ? "Made again by an event" : "Undone by an event", !isUndone);
  } catch (error) {
    append(view.written, [errorNote(error)]);
  }
}

async function showWritten(view, draft, recorded, did, isUndone) {
  const words = `${did}: ${draft.type}, version ${number(recorded.version)}`;
  const hint = isUndone ? " All is as before the edit." : " Undo writes another event, which restores what was there before.";
  view.written.hidden = false;
  replace(view.written, h("h3", {}, words),
    h("button", { type: "button", onclick: () => undo(view, recorded.id, isUndone) }, isUndone ? "Make the edit again" : "Undo"),
    h("span", { class: "hint" }, hint),
    h("details", {}, h("summary", {}, "The event"),
      h("pre", { tabindex: 0 }, JSON.stringify({ id: recorded.id, version: recorded.version, ...draft }, null, 2))));
  announce(words);
  await fill(view);
  await view.changed();
  view.written.focus();
}

/** Return a part that loads its content when it is opened. */
function disclosure(title, load) {
  const body = h("div", { class: "sources" });
  const details = h("details", {}, h("summary", {}, title), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount) return;
    try {
      replace(body, await load());
    } catch (error) {
      replace(body, errorNote(error));
    }
  });
  return details;
}

async function sourceList(view, memory) {
  const path = namespacePath(view.state.namespace, "memories", memory.id, "sources");
  const page = await get(path, { as_of: view.state.asOf });
  if (!page.items.length) return h("p", { class: "hint" }, "No message: it was stated by an event of its own.");
  return h("ol", {}, page.items.map((item) => h("li", {},
    h("p", { class: "meta" }, h("strong", {}, quoted(item.speaker)), " ", time(item.occurred_at), " ", badge(item.status)),
    passage(item.text))));
}

async function historyList(view, memory) {
  const path = namespacePath(view.state.namespace, KINDS[view.kind], memory.id, "history");
  const page = await get(path, { as_of: view.state.asOf });
  return h("ol", { class: "history" }, page.items.map((item) => h("li", { class: item.id === memory.id ? "this" : null },
    quoted(statement(view.kind, item)[2]), " ", badge(item.status, item.status === "active" ? "good" : "warn"), " ", validity(item))));
}
