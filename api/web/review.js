/** Review: the memories in quarantine, and the decisions on them. */

import { get, namespacePath, post } from "./api.js";
import { announce, append, badge, errorNote, field, h, memoryText, passage, replace, select, time } from "./dom.js";

const STATUSES = [["waiting", "waiting"], ["approve", "approved"], ["reject", "rejected"], ["redact", "redacted"]];
const DECISIONS = [["approve", "Approve"], ["redact", "Remove the instructions"], ["reject", "Reject"]];
const PAGE_ITEMS = 50;
const HINT = "Text by tools, documents or jobs that looks like instructions for an assistant is retrieved only after a review.";

/** Show the memories that look like instructions by others than the user. */
export async function show(content, state) {
  const list = h("div", { class: "memories" });
  const view = { state, list, status: "waiting" };
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Review")), h("p", { class: "hint" }, HINT),
    h("div", { class: "toolbar" }, field("Status", select("status", STATUSES, view.status, (event) => {
      view.status = event.target.value;
      fill(view);
    }))), list]);
  await fill(view);
}

/**
 * Return what waits for a review, or of it the memories of a kind, with the decisions; null when nothing waits, or when
 * the token may not review.
 */
export async function waiting(state, decided, kind = null) {
  try {
    const page = await get(namespacePath(state.namespace, "quarantine"), { status: "waiting", limit: PAGE_ITEMS });
    const items = page.items.filter((item) => kind === null || (item.memory?.kind ?? item.kind) === kind);
    return items.length ? h("section", { class: "waiting" }, h("h3", {}, "Waits for a review"), h("p", { class: "hint" }, HINT),
      items.map((item) => card(state, item, true, decided))) : null;
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/**
 * Return the buttons that decide on a memory; `decided` is called after it, an error is shown in `note`. Instructions are
 * removed from a message or a document alone.
 */
export function decisionButtons(state, { id, kind }, decided, note) {
  const decide = async (decision) => {
    try {
      await post(namespacePath(state.namespace, "quarantine", id, "review"), { decision });
      announce(`Recorded: ${decision}`);
      await decided();
      // The button is gone with its memory.
      if (document.activeElement === document.body) document.getElementById("view").focus({ preventScroll: true });
    } catch (error) {
      replace(note, errorNote(error));
    }
  };
  const possible = DECISIONS.filter(([decision]) => decision !== "redact" || kind === "episode" || kind === "document");
  return h("p", { class: "actions" }, possible.map(([decision, text]) => h("button", {
    type: "button", class: "quiet", onclick: () => decide(decision),
  }, text)));
}

async function fill(view, after = 0) {
  const { state, list, status } = view;
  try {
    const page = await get(namespacePath(state.namespace, "quarantine"), { status, limit: PAGE_ITEMS, after });
    if (!after) replace(list);
    append(list, [page.items.map((item) => card(state, item, status === "waiting", () => fill(view)))]);
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

function card(state, item, isWaiting, decided) {
  const note = h("div", {});
  return h("article", { class: "memory" },
    h("p", { class: "meta" }, badge((item.memory?.kind ?? item.kind).replace("episode", "message")), " ", time(item.occurred_at), " ", item.reasons.map((reason) => [badge(`looks like ${reason}`, "warn"), " "])),
    passage(item.memory ? memoryText(item.memory) : "It is no longer in the memory."),
    isWaiting ? decisionButtons(state, item, decided, note) : null, note);
}
