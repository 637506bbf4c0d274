/** Health: failures, lag, jobs, processes and sizes. */

import { get, namespacePath, post } from "./api.js";
import { announce, append, badge, bytesText, errorNote, h, number, quoted, replace, time } from "./dom.js";

const SIZES = { read_model: "read model", vectors: "vectors", past_read_models: "read models of the past" };

/** Show the health of the server, and the sizes of the namespace. */
export async function show(content, state) {
  const server = h("div", { class: "panels" });
  const failures = h("section", { class: "panel" });
  const sizes = h("section", { class: "panel" });
  const refresh = () => Promise.all([
    part(server, showServer), part(failures, (element) => showFailures(element, refresh)),
    state.namespace === null ? null : part(sizes, (element) => showSizes(element, state.namespace)),
  ]);
  append(content, [h("div", { class: "title" }, h("h2", {}, "Health"),
    h("button", { type: "button", class: "quiet", onclick: refresh }, "Refresh")), failures, server, sizes]);
  await refresh();
}

/** Fill a part of the view; its error does not hide the other parts, since a token may reach some of them only. */
async function part(element, fill) {
  try {
    await fill(element);
  } catch (error) {
    replace(element, errorNote(error));
  }
}

async function showServer(element) {
  const health = await get("/health");
  replace(element,
    panel("State", h("p", {}, badge(health.status, health.status === "ok" ? "good" : "warn"), ` version ${health.version}`),
      h("ul", {}, health.problems.map((problem) => h("li", {}, quoted(problem))))),
    panel("Lag", facts({
      "events not projected": health.lag.read_models, "messages not embedded": health.lag.embeddings,
      "messages not read for facts": health.lag.extraction, "namespaces behind": health.lag.namespaces_behind,
      "oldest, in seconds": health.lag.oldest_seconds ?? "none",
    }), health.lag.at_least ? h("p", { class: "hint" }, "At least: more namespaces are behind than were counted.") : null),
    panel("Queues", facts(health.queues)),
    panel("Embedding model", facts({ model: health.embedding.model, state: health.embedding.state, runtime: health.embedding.runtime ?? "none" })),
    widePanel("Jobs", table(["Job", "Started", "Took", "Namespaces", "Events", "Errors"], health.jobs.map((job) => [
      job.job, time(job.started), job.ended ? durationText(job.started, job.ended) : badge("running"), number(job.namespaces), number(job.events),
      job.errors ? badge(`${job.errors}: ${job.error ?? ""}`, "warn") : "0",
    ]))),
    panel("Processes", table(["Role", "Process", "Last heartbeat", "State"], health.processes.map((process) => [
      process.role, `${process.host} ${process.pid}`, time(process.last_beat), badge(process.alive ? "alive" : "dead", process.alive ? "good" : "warn"),
    ]))));
}

/** Show what the background work could not do, with what an operator can do about it. */
async function showFailures(element, refresh) {
  const { parked, dead_letters: letters } = await get("/v1/failures");
  const act = async (path, words, body) => {
    try {
      const answer = await post(path, body);
      await refresh();
      announce(words(answer));
      append(element, [h("p", { class: "hint" }, words(answer))]);
    } catch (error) {
      append(element, [errorNote(error)]);
    }
  };
  const button = (text, onclick) => h("button", { type: "button", class: "quiet", onclick }, text);
  const requeue = (path) => act(path, (answer) => `${answer.requeued} requeued, ${answer.failed.length} failed again`);
  const progress = (answer) => `Version ${answer.version} of ${answer.head}${answer.parked ? `, parked at ${answer.parked.version}` : ""}`;
  const actions = (item) => {
    const reason = h("input", { type: "text", required: true, placeholder: "why it is left out", "aria-label": `Why version ${item.version} is left out` });
    const skip = (event) => {
      event.preventDefault();
      act(namespacePath(item.namespace, "skip"), progress, { version: item.version, reason: reason.value });
    };
    return h("form", { onsubmit: skip }, button("Retry", () => act(namespacePath(item.namespace, "retry"), progress)), reason,
      h("button", { class: "quiet" }, "Skip"));
  };
  replace(element, h("h3", {}, `Failures: ${parked.length + letters.length}`),
    parked.length || letters.length ? null : h("p", { class: "hint" }, "None: no event and no background work has failed at every attempt."),
    h("ul", {}, parked.map((item) => h("li", {}, quoted(item.namespace), ` is parked at version ${item.version}: `, quoted(item.error),
      item.type ? [h("p", { class: "hint" }, `${item.type} ${item.event_id}, recorded `, time(item.recorded_at)), actions(item)] : null))),
    letters.length ? [button("Requeue all", () => requeue("/v1/dead-letters/requeue")),
      table(["Dead letter", "Failed", "Error", ""], letters.map((letter) => [
        quoted(`${letter.actor} ${letter.arguments.join(" ")}`), time(letter.failed_at), quoted(letter.error),
        button("Requeue", () => requeue(`/v1/dead-letters/${encodeURIComponent(letter.id)}/requeue`)),
      ]))] : null);
}

async function showSizes(element, namespace) {
  const stats = await get(namespacePath(namespace, "stats"));
  replace(element, h("h3", {}, "Sizes of ", quoted(namespace)),
    table(["Holds", "Number", "More"], [
      ["events", number(stats.version), ""],
      ...Object.entries(stats.episodes).map(([tier, { episodes, tokens }]) => [`${tier} episodes`, number(episodes), `${number(tokens)} tokens`]),
      ["entities", number(stats.entities), ""],
      ...Object.entries(stats.memories).map(([name, { active, others }]) => [name, number(active), others ? `${number(others)} no longer active` : ""]),
    ]),
    facts(Object.fromEntries(Object.entries(stats.bytes).map(([name, bytes]) => [SIZES[name] ?? name, bytesText(bytes)]))));
}

function durationText(start, end) {
  const ms = Date.parse(end) - Date.parse(start);
  return ms < 1_000 ? `${ms} ms` : `${number(Math.round(ms / 1_000))} s`;
}

function panel(title, ...children) {
  return h("section", { class: "panel" }, h("h3", {}, title), children);
}

/** Return a panel for a table of many columns. */
function widePanel(title, ...children) {
  const wide = panel(title, ...children);
  wide.classList.add("wide");
  return wide;
}

function facts(entries) {
  return h("dl", { class: "facts-list" }, Object.entries(entries).map(([name, value]) => [
    h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : String(value))]));
}

function table(head, rows) {
  if (!rows.length) return h("p", { class: "hint" }, "None.");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${head.filter(Boolean).join(", ")}` }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((text) => (text ? h("th", { scope: "col" }, text) : h("td", {}))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell)))))));
}
