/** Facts: the memories of each kind, those that no longer hold as well, with their messages and the forms that change them. */

import { get, namespacePath } from "./api.js";
import { append, badge, dateText, errorNote, field, h, number, quoted, replace, select } from "./dom.js";
import { HISTORIES, statement, statusText } from "./edits.js";
import { createEditor, memoryRow } from "./memory_row.js";
import { waiting } from "./review.js";
import { address } from "./state.js";

const PAGE_ITEMS = 500;
/** Memories that are loaded without being asked for, so that the newest are first and every one is searched: 2 MB. */
const LOADED_MAX = 3_000;
/** Rows that are drawn at once, and again with each "More". */
const ROWS = 200;
/** What holds now: a stale memory was not confirmed for long, and nothing contradicts it. */
const CURRENT = ["active", "stale"];
/** What held at some time. */
const ONCE_TRUE = [...CURRENT, "superseded", "ended"];
const STATUSES = [
  ["current", "holds now"], ["", "any"], ["stale", "not heard for long"], ["superseded", "replaced"], ["ended", "over"],
  ["invalidated", "withdrawn"], ["rejected", "not kept"], ["quarantined", "waits for a review"],
];
/** The kinds: label, list, kind of its memories, filter by whom one is about, and further filters. */
const SECTIONS = {
  facts: { label: "Facts", list: "facts", kind: "fact", about: "subject" },
  tasks: { label: "Tasks", list: "facts", kind: "fact", about: "subject", filters: { type: "task" } },
  decisions: { label: "Decisions", list: "facts", kind: "fact", about: "subject", filters: { type: "decision" } },
  preferences: { label: "Preferences", list: "preferences", kind: "preference", about: "subject" },
  relationships: { label: "Relationships", list: "relationships", kind: "relationship", about: "source" },
  procedures: { label: "Procedures", list: "procedures", kind: "procedure" },
  documents: { label: "Documents", list: "documents", kind: "document" },
};

/** Show the memories of a namespace. */
export async function show(content, state, { changed }) {
  const asked = state.parameters.get("kind");
  const view = {
    state, section: Object.hasOwn(SECTIONS, asked ?? "") ? asked : "facts", status: "current", trueOn: "",
    about: state.parameters.get("subject") ?? "", words: "", order: "newest", items: [], next: null, shown: ROWS,
    rows: h("ol", { class: "rows" }), count: h("span", { class: "count" }), held: h("div", {}),
  };
  view.editor = createEditor(state, async () => {
    await fill(view);
    await changed();
  });
  const status = field("Status", select("status", STATUSES, view.status, (event) => set({ status: event.target.value })));
  const about = field("About", h("input", { type: "search", name: "about", value: view.about, placeholder: "anyone",
    onchange: (event) => set({ about: event.target.value.trim() }) }));
  const trueOn = field("True on (empty: now)", h("input", { type: "date", name: "true_on", onchange: (event) => set({ trueOn: event.target.value }) }));
  const sections = Object.entries(SECTIONS).map(([name, { label }]) => h("button", {
    type: "button", class: "quiet", "data-section": name, onclick: () => set({ section: name }),
  }, label));
  const set = async (changes) => {
    Object.assign(view, changes);
    if ("section" in changes) {
      // What is listed while another kind loads would stand under its name.
      replace(view.rows);
      replace(view.held);
      view.count.textContent = "";
    }
    const { kind, about: filter } = SECTIONS[view.section];
    sections.forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.section === view.section)));
    trueOn.hidden = !HISTORIES[kind];
    status.hidden = kind === "document" || dayEnd(view) !== null;
    about.hidden = !filter;
    const parameters = new URLSearchParams({ kind: view.section, ...(view.about ? { subject: view.about } : {}) });
    history.replaceState(null, "", address({ ...state, parameters }));
    await fill(view);
  };
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Memories"), view.count),
    h("div", { class: "sections", role: "group", "aria-label": "Kind" }, sections),
    h("div", { class: "toolbar" },
      field("Find", h("input", { type: "search", name: "find", placeholder: "words", oninput: (event) => {
        Object.assign(view, { words: event.target.value, shown: ROWS });
        draw(view);
      } })), status, about, trueOn,
      field("Order", select("order", [["newest", "newest first"], ["oldest", "oldest first"], ["text", "A to Z"]], view.order, (event) => {
        Object.assign(view, { order: event.target.value, shown: ROWS });
        draw(view);
      }))),
    state.asOf === null ? null : h("p", { class: "hint" }, "This is a past moment; go to now to change something."),
    view.editor.written, view.held, view.rows,
  ]);
  await set({});
}

/** Return the end of the day on which the memories were true, in the zone of the browser; null: now. */
function dayEnd({ section, trueOn }) {
  return trueOn && HISTORIES[SECTIONS[section].kind] ? Date.parse(`${trueOn}T23:59:59`) : null;
}

async function fill(view) {
  Object.assign(view, { items: [], next: "", shown: ROWS });
  await Promise.all([load(view, LOADED_MAX), showWaiting(view)]);
}

async function showWaiting(view) {
  const { state, section } = view;
  const list = state.asOf === null ? await waiting(state, () => view.editor.reload(), SECTIONS[section].kind) : null;
  if (view.section === section) replace(view.held, list);
}

/** Load pages until there are `itemsMax` memories, and draw them: the list is in the order in which they were read. */
async function load(view, itemsMax) {
  const { state, section, about, items } = view;
  const status = dayEnd(view) === null ? view.status : ONCE_TRUE;
  const { list, kind, about: aboutFilter, filters } = SECTIONS[section];
  view.rows.setAttribute("aria-busy", "true");
  try {
    while (view.next !== null && items.length < itemsMax) {
      const page = await get(namespacePath(state.namespace, list), {
        ...filters, status: kind === "document" ? null : status === "current" ? CURRENT : status,
        ...(aboutFilter ? { [aboutFilter]: about } : {}), as_of: state.asOf, limit: PAGE_ITEMS, after: view.next,
      });
      // A newer choice has a list of its own.
      if (view.items !== items) return;
      items.push(...page.items);
      view.next = page.next;
    }
    draw(view);
  } catch (error) {
    replace(view.rows, h("li", {}, errorNote(error)));
  }
  view.rows.removeAttribute("aria-busy");
}

/** Draw more rows, load more memories when all are drawn, and move the focus to the first new row. */
async function showMore(view) {
  const first = view.rows.childElementCount - 1;
  view.shown += ROWS;
  await load(view, view.items.length + (view.shown > view.items.length ? PAGE_ITEMS : 0));
  view.rows.children[first]?.querySelector("button")?.focus();
}

/** Draw the loaded memories that have the words, in the order. */
function draw(view) {
  const { kind, label } = SECTIONS[view.section];
  const words = view.words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const at = dayEnd(view);
  const rows = view.items.map((memory) => ({ memory, parts: statement(kind, memory), from: memory.valid_from ?? memory.created_at ?? memory.added_at }))
    .filter(({ memory, parts, from }) => (at === null || (Date.parse(from) <= at && !(Date.parse(memory.valid_until) <= at)))
      && words.every((word) => parts.join(" ").toLocaleLowerCase().includes(word)));
  const byTime = (a, b) => Date.parse(a.from) - Date.parse(b.from);
  rows.sort(view.order === "text" ? (a, b) => a.parts.join(" ").localeCompare(b.parts.join(" "))
    : view.order === "oldest" ? byTime : (a, b) => byTime(b, a));
  replace(view.rows, rows.slice(0, view.shown).map(({ memory, parts, from }) => memoryRow(view.editor, {
    id: memory.id, kind, isOver: at === null && memory.status !== undefined && !CURRENT.includes(memory.status),
    line: [parts.map((part, at) => [at ? " " : null, quoted(part)]), memory.pinned ? [" ", badge("pinned")] : null],
    said: `since ${dateText(from)}${statusText(memory)}`, review: memory.review,
  })), rows.length <= view.shown && view.next === null ? null : h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => showMore(view) }, "More")));
  if (!rows.length && view.next === null) append(view.rows, [h("li", { class: "hint" }, words.length ? "None has these words." : "None with these filters at this moment.")]);
  view.count.textContent = `${number(rows.length)}${view.next === null ? "" : " or more"} ${label.toLocaleLowerCase()}`;
}
