/** Ask: a retrieval with its context, the reasons of each item, and what was dropped and why. */

import { get, namespacePath, post } from "./api.js";
import { append, badge, enterSends, errorNote, field, h, memoryText, number, passage, quoted, replace, select, time } from "./dom.js";

/** Features of one candidate that are shown: those that moved its rank most. */
const FEATURES_MAX = 6;
const TRACES = 10;
const ACTIONS = {
  direct: "answer from these memories",
  scoped: "answer from the cited memories alone, and say so",
  defer: "say that the memory has no answer, or ask",
};

/** Show the query box and the latest retrievals of a namespace. */
export async function show(content, state) {
  const result = h("div", { class: "result" });
  const query = enterSends(h("textarea", { name: "query", rows: 2, required: true, placeholder: "Where does Ann work?" }));
  const form = h("form", { class: "ask", onsubmit: async (event) => {
    event.preventDefault();
    await ask(state, event.target.elements, result);
    await showTraces(state, traces, result);
  } },
  field("Question or message (Enter asks, Shift+Enter begins a line)", query),
  h("div", { class: "toolbar" },
    field("Mode", select("mode", [["active", "active: a question to the memory"], ["passive", "passive: the last message of a chat"]], "active")),
    field("Items", h("input", { name: "limit", type: "number", min: 1, max: 100, value: 10 })),
    field("Token budget", h("input", { name: "budget", type: "number", min: 0, max: 100_000, value: 3_500 })),
    h("label", { class: "check" }, h("input", { type: "checkbox", name: "gate", checked: true }), "Nothing when nothing fits"),
    h("button", { type: "submit" }, "Ask")));
  const traces = h("section", { class: "traces", "aria-label": "Latest retrievals" });
  append(content, [h("div", { class: "title" }, h("h2", {}, "Ask")), form, result, traces]);
  await showTraces(state, traces, result);
}

async function ask(state, { query, mode, limit, budget, gate }, result) {
  replace(result, h("p", { class: "hint" }, "Retrieving …"));
  try {
    const answer = await post(namespacePath(state.namespace, "retrieve"), {
      query: query.value, mode: mode.value, limit: Number(limit.value), budget_tokens: Number(budget.value), gate: gate.checked,
      ...(state.asOf === null ? {} : { as_of: state.asOf }),
    });
    const trace = await traceOf(state, answer.trace_id);
    showResult(state, result, trace ?? answer, answer.items);
  } catch (error) {
    replace(result, errorNote(error));
  }
}

/** Return the trace of a retrieval; null when the server keeps none. */
async function traceOf(state, id) {
  try {
    return await get(namespacePath(state.namespace, "traces", id));
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

async function showTraces(state, element, result) {
  try {
    const page = await get(namespacePath(state.namespace, "traces"), { limit: TRACES });
    replace(element, h("h3", {}, "Latest retrievals"), page.items.length ? h("ol", {}, page.items.map((item) => h("li", {},
      h("button", { type: "button", class: "link", onclick: async () => {
        try {
          showResult(state, result, await get(namespacePath(state.namespace, "traces", item.trace_id)), null);
          result.scrollIntoView({ block: "start" });
        } catch (error) {
          replace(result, errorNote(error));
        }
      } }, quoted(item.query.slice(0, 120))),
      h("span", { class: "hint" }, " ", time(item.at), ` · ${item.trigger} · ${item.items.length} items · ${Math.round(item.latency_ms)} ms`))))
      : h("p", { class: "hint" }, "No retrieval yet."));
  } catch (error) {
    replace(element, errorNote(error));
  }
}

/** Show a retrieval from its trace; `items` have the texts, which a trace leaves out. */
function showResult(state, result, trace, items) {
  const texts = new Map((items ?? []).map((item) => [item.id, item]));
  const guidance = trace.answer ?? {};
  replace(result,
    h("h3", {}, trace.query ? quoted(trace.query) : "Result"),
    h("p", { class: "meta" }, badge(guidance.action ?? "", guidance.action === "defer" ? "warn" : "good"), ` ${ACTIONS[guidance.action] ?? ""}`,
      ` · probability of an answer ${Math.round((guidance.grounding ?? 0) * 100)} % · ${number(trace.tokens)} tokens · ${Math.round(trace.latency_ms)} ms`),
    trace.degraded?.length ? h("p", { class: "warning" }, `Missing: ${trace.degraded.join("; ")}`) : null,
    h("h4", {}, "Context for the prompt"), h("pre", { class: "context", tabindex: 0, dir: "auto" }, trace.context || "(empty)"),
    h("h4", {}, `Recalled: ${trace.items.length}`), recalled(state, trace, texts),
    trace.dropped ? [h("h4", {}, `Dropped: ${trace.dropped.length}`), dropped(state, trace.dropped)] : null,
    trace.understood ? understanding(trace) : h("p", { class: "hint" }, "The server keeps no trace of it, so that the reasons are not known."));
}

function recalled(state, trace, texts) {
  const lines = new Map((trace.lines ?? []).map((line) => [line.id, line]));
  return h("ol", { class: "items" }, trace.items.map((item) => {
    const full = texts.get(item.id);
    const candidate = (trace.candidates ?? []).find(({ ranks }) => Object.keys(ranks).length > 0
      && Object.entries(ranks).every(([name, rank]) => item.ranks[name] === rank));
    const bar = h("span", { class: "score-bar", "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.width = `${Math.round(Math.min(1, Math.max(0, item.score)) * 100)}%`;
    const text = h("div", {}, full ? passage(full.text) : showText(state, item));
    return h("li", {}, h("p", { class: "meta" }, badge(item.kind), " ", full?.speaker ? [h("strong", {}, quoted(full.speaker)), " "] : null,
      full ? time(full.occurred_at) : quoted(item.id), " ", bar, ` ${score(item.score)}`), text,
    h("details", {}, h("summary", {}, "Why"), why(item, candidate, lines.get(item.id), trace.sources?.[item.id])));
  }));
}

function score(value) {
  return value >= 0.01 ? `${Math.round(value * 100)} %` : value.toFixed(3);
}

function why(item, candidate, line, sources) {
  const ranks = Object.entries(item.ranks).sort((a, b) => a[1] - b[1]);
  const features = Object.entries(candidate?.features ?? {}).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, FEATURES_MAX);
  return h("dl", {},
    h("dt", {}, "Lists that have it"), h("dd", {}, ranks.length ? ranks.map(([name, rank]) => `${words(name)}: place ${rank}`).join(" · ")
      : "none: it always comes with this mode"),
    features.length ? [h("dt", {}, "Strongest features"), h("dd", {}, features.map(([name, value]) => `${words(name)} ${value}`).join(" · "))] : null,
    candidate ? [h("dt", {}, "Ranking score"), h("dd", {}, String(candidate.score))] : null,
    line ? [h("dt", {}, "In the context"), h("dd", {}, `${line.category}, ${line.tokens} tokens`)] : null,
    sources?.length ? [h("dt", {}, "Sources"), h("dd", {}, sources.map((id, at) => [at ? ", " : "", quoted(id)]))] : null);
}

function words(name) {
  return name.replaceAll("_", " ");
}

function dropped(state, entries) {
  if (!entries.length) return h("p", { class: "hint" }, "Nothing.");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Dropped" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Memory"), h("th", { scope: "col" }, "Score"), h("th", { scope: "col" }, "Reason"))),
    h("tbody", {}, entries.map((entry) => h("tr", {}, h("td", {}, badge(entry.kind), " ", quoted(entry.id), showText(state, entry)),
      h("td", { class: "number" }, score(entry.score ?? 0)), h("td", {}, entry.reason))))));
}

/** Return a part that loads the text of a memory when it is opened. */
function showText(state, item) {
  const body = h("div", {});
  const details = h("details", {}, h("summary", {}, "Text"), body);
  details.addEventListener("toggle", async () => {
    if (!details.open || body.childElementCount) return;
    try {
      const memory = await get(namespacePath(state.namespace, "memories", item.id), { as_of: state.asOf });
      replace(body, passage(memoryText(memory)));
    } catch (error) {
      replace(body, errorNote(error));
    }
  });
  return details;
}

function understanding(trace) {
  const entries = trace.understood.map((query) => h("dl", {},
    h("dt", {}, "Question"), h("dd", {}, quoted(query.question)),
    h("dt", {}, "Words"), h("dd", {}, query.keywords.join(", ") || "none"),
    h("dt", {}, "People and entities"), h("dd", {}, [...query.participants, ...query.entities].join(", ") || "none"),
    query.time_ranges.length ? [h("dt", {}, "Times"), h("dd", {}, query.time_ranges.map((range) => range.join(" to ")).join("; "))] : null));
  const stages = Object.entries(trace.stages_ms ?? {}).map(([name, ms]) => `${words(name)} ${ms} ms`).join(" · ");
  return h("details", {}, h("summary", {}, "How the question was understood, and the time of each stage"), entries, h("p", { class: "hint" }, stages));
}
