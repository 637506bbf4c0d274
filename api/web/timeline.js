/** Timeline: the episodes of a namespace by time and tier, and the messages that each summary stands for. */

import { get, namespacePath } from "./api.js";
import { append, badge, clippedPassage, dateText, errorNote, field, h, number, passage, quoted, replace, select, time } from "./dom.js";

const TIERS = ["raw", "compressed", "distilled"];
/** Pixels of one period: wide enough for a finger (WCAG 2.2, 2.5.8). */
const PERIOD_PIXELS = 26;
const PERIODS_MAX = 48;
/** Episodes of one request. */
const PAGE_ITEMS = 100;

/** Show the timeline of a namespace. */
export async function show(content, state) {
  const path = namespacePath(state.namespace, "timeline");
  const periods = Math.max(8, Math.min(PERIODS_MAX, Math.floor((Math.min(1_060, document.documentElement.clientWidth) - 40) / PERIOD_PIXELS)));
  const [answer, stats] = await Promise.all([
    get(path, { periods, as_of: state.asOf }),
    get(namespacePath(state.namespace, "stats"), { as_of: state.asOf }),
  ]);
  const view = { state, tier: "", period: null, answer };
  const list = h("div", { class: "episodes" });
  const bars = h("div", { class: "bars", role: "group", "aria-label": "Periods" });
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Timeline"), tierCounts(stats.episodes)),
    bars,
    answer.items.length ? h("p", { class: "axis hint" }, time(answer.items[0].start, dateText), time(answer.items.at(-1).end, dateText)) : null,
    h("div", { class: "toolbar" }, field("Tier", select("tier", [["", "All tiers"], ...TIERS.map((tier) => [tier, tier])], "",
      (event) => {
        view.tier = event.target.value;
        fill(list, view);
      })), h("p", { class: "hint" }, "Choose a bar to see its messages. A summary lists the messages that it stands for.")),
    list,
  ]);
  drawBars(bars, view, list);
  if (answer.items.length) {
    // The newest period: what was said last is what people look for first.
    view.period = answer.items.at(-1);
    drawBars(bars, view, list);
    await fill(list, view);
  } else {
    replace(list, h("p", { class: "hint" }, "No messages at this moment."));
  }
}

function tierCounts(episodes) {
  return h("span", { class: "count" }, TIERS.map((tier) => [badge(`${number(episodes[tier].episodes)} ${tier}`, tier), " "]));
}

function drawBars(bars, view, list) {
  const most = Math.max(1, ...view.answer.items.map((item) => total(item)));
  replace(bars, withGaps(view.answer.items).map((item) => {
    if (!item.tiers) return h("span", { class: "gap", title: `${dateText(item.start)}: nothing` });
    const words = TIERS.filter((tier) => item.tiers[tier]).map((tier) => `${item.tiers[tier]} ${tier}`).join(", ");
    const button = h("button", {
      type: "button", class: "bar", "aria-pressed": String(item === view.period), title: `${dateText(item.start)}: ${words}`,
      "aria-label": `${dateText(item.start)} to ${dateText(item.end)}: ${words}`,
      onclick: async () => {
        view.period = item;
        bars.querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
        await fill(list, view);
      },
    });
    for (const tier of [...TIERS].reverse()) {
      if (!item.tiers[tier]) continue;
      const part = h("span", { class: `part ${tier}` });
      part.style.height = `${Math.max(3, (100 * item.tiers[tier]) / most)}%`;
      button.append(part);
    }
    return button;
  }));
}

/** Return the periods with those between them in which nothing was said. */
function withGaps(items) {
  const filled = [];
  for (const item of items) {
    const width = Date.parse(item.end) - Date.parse(item.start);
    const before = filled.at(-1);
    for (let start = before ? Date.parse(before.start) + width : Infinity; start < Date.parse(item.start); start += width) {
      filled.push({ start: new Date(start).toISOString() });
    }
    filled.push(item);
  }
  return filled;
}

function total(item) {
  return Object.values(item.tiers).reduce((sum, count) => sum + count, 0);
}

async function fill(list, view) {
  const { period } = view;
  replace(list, h("h3", {}, `${dateText(period.start)} to ${dateText(period.end)}`));
  await addPage(list, view, "");
}

/** Append a page of episodes; they are grouped by session. */
async function addPage(list, view, after) {
  const { state, tier, period } = view;
  try {
    const page = await get(namespacePath(state.namespace, "episodes"), {
      since: period.start, until: period.end, tier, as_of: state.asOf, limit: PAGE_ITEMS, after,
    });
    if (view.period !== period || view.tier !== tier) return;
    let session;
    let group;
    for (const episode of page.items) {
      if (!group || episode.session_id !== session) {
        session = episode.session_id;
        group = h("ol", { class: "session" });
        list.append(h("h4", {}, session ? ["Session ", quoted(session)] : "Without a session", " · ", time(episode.occurred_at, dateText)), group);
      }
      group.append(entry(state, episode));
    }
    if (!page.items.length && !after) list.append(h("p", { class: "hint" }, "Nothing of this tier in this period."));
    if (page.next !== null) {
      const more = h("button", { type: "button", class: "quiet", onclick: () => {
        more.remove();
        addPage(list, view, page.next);
      } }, "More");
      list.append(more);
    }
  } catch (error) {
    list.append(errorNote(error));
  }
}

function entry(state, episode) {
  const isSummary = episode.tier !== "raw";
  return h("li", { class: `episode ${episode.tier}${episode.status === "active" ? "" : " past"}` },
    h("p", { class: "meta" }, h("strong", {}, isSummary ? "Summary" : quoted(episode.speaker)), " ", time(episode.occurred_at), " ",
      badge(episode.tier, episode.tier), " ", episode.status === "active" ? null : badge(episode.status === "quarantined" ? "waits for a review" : episode.status, "warn"),
      episode.pinned ? badge("pinned") : null),
    clippedPassage(episode.text || episode.caption),
    isSummary ? sources(state, episode) : null);
}

/** Return the messages behind a summary; they are loaded when they are opened. */
function sources(state, episode) {
  const body = h("div", { class: "sources" });
  const details = h("details", {}, h("summary", {}, "The messages that it stands for"), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount) return;
    try {
      const page = await get(namespacePath(state.namespace, "episodes", episode.id, "sources"));
      replace(body, h("p", { class: "hint" }, `${number(page.items.length)} messages, as they were said`),
        h("ol", {}, page.items.map((item) => h("li", {},
          h("p", { class: "meta" }, h("strong", {}, quoted(item.speaker)), " ", time(item.occurred_at)), passage(item.text)))));
    } catch (error) {
      replace(body, errorNote(error));
    }
  });
  return details;
}
