/** Profile: what the memory knows about each person as sentences by topic, what changed last, and what waits for a review. */

import { get, namespacePath } from "./api.js";
import { append, badge, dateText, errorNote, field, h, number, quoted, replace, select } from "./dom.js";
import { createEditor, memoryRow } from "./memory_row.js";
import { waiting } from "./review.js";
import { address } from "./state.js";

/** The headings of the topics, as the server classes them, in its order. */
const TOPICS = {
  identity: "Who", home: "Home", work: "Work", relation: "People and animals", health: "Health", preference: "Likes",
  possession: "Belongings", habit: "Habits", decision: "Decisions", task: "Tasks", plan: "Plans", event: "Events",
  stated: "More", other: "Also said", rule: "Rules for the bot",
};
/** Topics of what is said once: a day on which it was said, and not since when it holds. */
const SAID_ONCE = ["decision", "task", "plan", "event"];
const ORDERS = [["topic", "by topic"], ["newest", "newest first"], ["oldest", "oldest first"]];
const CHANGES_SHOWN = 10;
/** Statements of a topic that are drawn until it is opened, so that all topics are seen at a glance. */
const STATEMENTS_SHOWN = 8;

/** Show the profile of a namespace. */
export async function show(content, state, { changed }) {
  const view = {
    state, answer: null, person: "", words: "", order: "topic", trueOn: state.parameters.get("true_on") ?? "",
    opened: new Set(), count: h("span", { class: "count" }), jumps: h("span", { class: "actions" }), list: h("div", {}), changes: h("section", {}), held: h("div", {}), people: h("select", { name: "about" }),
  };
  view.editor = createEditor(state, async () => {
    await fill(view);
    await changed();
  });
  view.people.addEventListener("change", () => {
    view.person = view.people.value;
    draw(view);
  });
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Profile"), view.count, view.jumps),
    h("div", { class: "toolbar" },
      field("About", view.people),
      field("Find", h("input", { type: "search", name: "find", placeholder: "words", oninput: (event) => {
        view.words = event.target.value;
        draw(view);
      } })),
      field("Order", select("order", ORDERS, view.order, (event) => {
        view.order = event.target.value;
        draw(view);
      })),
      field("True on (empty: now)", h("input", { type: "date", name: "true_on", value: view.trueOn, onchange: async (event) => {
        view.trueOn = event.target.value;
        const parameters = new URLSearchParams(view.trueOn ? { true_on: view.trueOn } : {});
        history.replaceState(null, "", address({ ...state, parameters }));
        await fill(view);
      } }))),
    view.editor.written, view.list, view.changes, view.held,
  ]);
  await fill(view);
}

async function fill(view) {
  const { state, trueOn } = view;
  view.list.setAttribute("aria-busy", "true");
  const held = state.asOf === null ? waiting(state, () => view.editor.reload()) : null;
  try {
    // The end of the day in the zone of the browser.
    const at = trueOn ? new Date(`${trueOn}T23:59:59`).toISOString() : null;
    view.answer = await get(namespacePath(state.namespace, "profile"), { true_at: at, as_of: state.asOf });
    const { people, total } = view.answer;
    if (!people.some(({ name }) => name === view.person)) view.person = "";
    replace(view.people, h("option", { value: "" }, `everyone (${number(total)})`), people.map(({ name, statements }) => h("option", {
      value: name, selected: name === view.person,
    }, `${personText(name)} (${number(statements)})`)));
    const list = await held;
    draw(view);
    replace(view.held, list);
    const { length } = view.answer.changes;
    replace(view.jumps, length ? jump(`${length} ${length === 1 ? "change" : "changes"} lately`, view.changes) : null,
      list ? jump(`${list.querySelectorAll("article").length} to review`, view.held) : null);
  } catch (error) {
    replace(view.list, errorNote(error));
  }
  view.list.removeAttribute("aria-busy");
}

/** Return a button that leads to a part of the page below. */
function jump(text, part) {
  return h("button", { type: "button", class: "link", onclick: () => {
    part.scrollIntoView({ block: "start" });
    part.querySelector("button")?.focus({ preventScroll: true });
  } }, text);
}

function personText(name) {
  return name === "user" ? "the user" : name;
}

/** Draw the statements and changes of the chosen person that have the words. */
function draw(view) {
  const { answer, person, order } = view;
  const words = view.words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const isShown = (item, text) => (!person || item.person === person) && words.every((word) => text.toLocaleLowerCase().includes(word));
  const items = answer.items.filter((item) => isShown(item, `${item.person} ${item.text}`));
  const sign = order === "newest" ? -1 : 1;
  const groups = order === "topic" ? Map.groupBy(items, (item) => item.topic)
    : new Map([["", items.sort((a, b) => sign * (Date.parse(a.said_at) - Date.parse(b.said_at)))]]);
  replace(view.list, [...groups].map(([topic, members]) => {
    const isWhole = !topic || words.length > 0 || view.opened.has(topic) || members.length <= STATEMENTS_SHOWN + 1;
    const shown = isWhole ? members : members.slice(0, STATEMENTS_SHOWN);
    return h("section", { class: "topic" }, topic ? h("h3", {}, TOPICS[topic] ?? topic) : null,
      h("ol", { class: "rows", "data-topic": topic }, shown.map((item) => row(view, item)), isWhole ? null : openButton(view, topic, members.length - shown.length)));
  }),
  items.length ? null : emptyNote(view, words));
  const rest = answer.total - answer.items.length;
  view.count.textContent = `${number(items.length)} ${items.length === 1 ? "statement" : "statements"}${rest ? `, and ${number(rest)} older ones in Memories` : ""}`;
  const changes = answer.changes.filter((change) => isShown(change, `${change.before} ${change.after ?? ""}`));
  drawChanges(view, changes, CHANGES_SHOWN);
}

/** Return the button that draws the other statements of a topic. */
function openButton(view, topic, count) {
  return h("li", {}, h("button", { type: "button", class: "link", onclick: () => {
    view.opened.add(topic);
    draw(view);
    const rows = [...view.list.querySelectorAll(".rows")].find(({ dataset }) => dataset.topic === topic);
    rows.children[STATEMENTS_SHOWN].querySelector("button").focus();
  } }, `${number(count)} more`, h("span", { class: "unseen" }, ` of ${TOPICS[topic] ?? topic}`)));
}

function emptyNote(view, words) {
  return h("p", { class: "hint" }, words.length ? "None has these words."
    : view.trueOn ? "Nothing is known of that day." : "Nothing is known about anyone yet. What people say is read for it within minutes.");
}

function row(view, item) {
  const quote = item.is_quote ? [view.person ? null : [quoted(personText(item.person)), ": "], "“", quoted(item.text), "”"] : quoted(item.text);
  return memoryRow(view.editor, { id: item.id, kind: item.kind, line: [quote, item.pinned ? [" ", badge("pinned")] : null], said: saidText(item) });
}

/** Return in words since when a statement holds, who said it, and what is not certain of it. */
function saidText(item) {
  const said = dateText(item.said_at);
  const from = item.valid_from === null ? said : dateText(item.valid_from);
  const isOnce = item.is_quote || SAID_ONCE.includes(item.topic);
  const who = item.source_type === "corrected" ? "corrected" : item.said_by ? `said by ${personText(item.said_by)}`
    : item.source_type === "inferred" ? "concluded" : "noted by a program";
  const isPast = item.status === "superseded" || item.status === "ended";
  return [
    isOnce ? null : `since ${from}`, isOnce || from !== said ? `${who} on ${said}` : who,
    item.valid_until ? `${isPast ? "" : "true "}until ${dateText(item.valid_until)}` : null,
    item.status === "stale" ? "not heard again for long" : null, item.is_sure ? null : "not sure",
  ].filter(Boolean).join(" · ");
}

function drawChanges(view, changes, count) {
  replace(view.changes, changes.length ? h("section", { class: "topic changes" }, h("h3", {}, "What changed lately"),
    h("ol", { class: "rows" }, changes.slice(0, count).map((change) => memoryRow(view.editor, {
      id: change.after_id ?? change.id, kind: change.kind, said: `${change.status === "invalidated" ? "withdrawn" : "changed"} on ${dateText(change.changed_at)}`,
      line: [h("s", {}, quoted(change.before)), " → ", change.after === null ? "no longer" : quoted(change.after)],
    })), changes.length > count ? h("li", {}, h("button", { type: "button", class: "quiet", onclick: () => drawChanges(view, changes, changes.length) }, "More")) : null)) : null);
}
