/** Review: the memories in quarantine, and the decisions on them. */

import { get, namespacePath, post } from "./api.js";
import { announce, append, badge, errorNote, field, h, memoryText, passage, quoted, replace, select, time } from "./dom.js";

const STATUSES = [["waiting", "waiting"], ["approve", "approved"], ["reject", "rejected"], ["redact", "redacted"]];
const DECISIONS = [["approve", "Approve"], ["redact", "Remove the instructions"], ["reject", "Reject"]];
const PAGE_ITEMS = 50;

/** Show the memories that look like instructions by others than the user. */
export async function show(content, state) {
  const list = h("div", { class: "memories" });
  const view = { state, list, status: "waiting" };
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Review")),
    h("p", { class: "hint" }, "Text by tools, documents or jobs that looks like instructions for an assistant is retrieved only after a review."),
    h("div", { class: "toolbar" }, field("Status", select("status", STATUSES, view.status, (event) => {
      view.status = event.target.value;
      fill(view);
    }))), list]);
  await fill(view);
}

async function fill(view, after = 0) {
  const { state, list, status } = view;
  try {
    const page = await get(namespacePath(state.namespace, "quarantine"), { status, limit: PAGE_ITEMS, after });
    if (!after) replace(list);
    append(list, [page.items.map((item) => card(view, item))]);
    if (!list.childElementCount) replace(list, h("p", { class: "hint" }, status === "waiting" ? "Nothing waits for a review." : "None."));
    if (page.next !== null) {
      const more = h("button", { type: "button", class: "quiet", onclick: () => {
        more.remove();
        fill(view, page.next);
      } }, "More");
      list.append(more);
    }
  } catch (error) {
    replace(list, errorNote(error));
  }
}

function card(view, item) {
  const note = h("div", {});
  const decide = async (decision) => {
    try {
      const path = namespacePath(view.state.namespace, "quarantine", item.id, "review");
      await post(path, { decision });
      announce(`Event written: memory.reviewed, ${decision}`);
      await fill(view);
    } catch (error) {
      replace(note, errorNote(error));
    }
  };
  return h("article", { class: "memory" }, h("h3", {}, quoted(item.id)),
    h("p", { class: "meta" }, badge(item.kind), " ", time(item.occurred_at), " ", item.reasons.map((reason) => [badge(reason, "warn"), " "])),
    passage(item.memory ? memoryText(item.memory) : "It is no longer in the memory."),
    view.status === "waiting" ? h("p", { class: "actions" }, DECISIONS.map(([decision, text]) => h("button", {
      type: "button", class: "quiet", onclick: () => decide(decision),
    }, text))) : null, note);
}
