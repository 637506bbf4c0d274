/** Edits: the events that change memories, and the words for what is known of them. The server undoes an edit by its id. */

import { dateText } from "./dom.js";

/**
 * @typedef {{type: string, payload: Record<string, any>}} Draft  an event without its id
 */

/** The lists with a history of values, by the kind of their memories. */
export const HISTORIES = { fact: "facts", preference: "preferences" };

/** What an event did, in a word. */
export const OUTCOMES = {
  "fact.corrected": "Corrected", "preference.stated": "Corrected", "procedure.recorded": "Corrected", "memory.ended": "Ended",
  "memory.pinned": "Pinned", "memory.unpinned": "Unpinned", "memory.forgotten": "Forgotten", "document.removed": "Removed",
};

/** Return the statement of a memory as parts; the last one is its value. */
export function statement(kind, memory) {
  if (kind === "fact" && memory.statement) return [memory.statement];
  if (kind === "fact") return [memory.subject, memory.predicate === "says" ? "said:" : memory.predicate, memory.object];
  if (kind === "relationship") return [memory.source, memory.type, memory.target];
  if (kind === "procedure") return [`${memory.name}:`, memory.trigger, `→ ${memory.steps.join(" → ")}`];
  if (kind === "document") return [memory.title];
  return memory.standing ? [memory.value] : [memory.subject || "user", memory.name, memory.value];
}

/** Return the validity of a memory in words, after its beginning; empty while it holds. */
export function statusText({ status, valid_until: until, updated_at: updatedAt }) {
  const end = until ? dateText(until) : "";
  if (status === "stale") return " · not heard again for long";
  if (status === "superseded") return ` · replaced${end && ` on ${end}`}`;
  if (status === "ended") return ` · until ${end || dateText(updatedAt)}`;
  if (status === "invalidated") return " · withdrawn";
  if (status === "rejected") return " · not kept, since it is doubtful";
  return end ? ` · true until ${end}` : "";
}

/** Return the value that can be corrected; null: a relationship is ended, and another one stated. */
export function correctable(kind, memory) {
  if (kind === "procedure") return memory.steps.join("\n");
  return kind === "fact" ? memory.object : kind === "preference" ? memory.value : null;
}

/** @returns {Draft} */
export function correction(kind, memory, text) {
  if (kind === "fact") {
    const { subject, predicate, id } = memory;
    return { type: "fact.corrected", payload: { subject, predicate, object: text, corrects: id } };
  }
  if (kind === "procedure") {
    const { name, trigger, context, confidence } = memory;
    const steps = text.split("\n").map((step) => step.trim()).filter(Boolean);
    return { type: "procedure.recorded", payload: withoutEmpty({ name, trigger, steps, context, confidence }) };
  }
  const { category, strength, standing, name, subject } = memory;
  const payload = { category, strength, standing, key: name, value: text, source_type: "corrected" };
  return { type: "preference.stated", payload: withoutEmpty({ ...payload, subject }) };
}

/** @returns {Draft} */
export function pinning(memory, isPinned) {
  return { type: isPinned ? "memory.unpinned" : "memory.pinned", payload: { memory_id: memory.id } };
}

/** @returns {Draft} */
export function ending(memory, endedAt, reason) {
  return { type: "memory.ended", payload: withoutEmpty({ memory_id: memory.id, ended_at: endedAt, reason }) };
}

/** @returns {Draft} */
export function forgetting(memory, reason) {
  return { type: "memory.forgotten", payload: withoutEmpty({ memory_id: memory.id, reason }) };
}

/** @returns {Draft} */
export function removal(document) {
  return { type: "document.removed", payload: { document_id: document.id } };
}

function withoutEmpty(payload) {
  return Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== null && value !== undefined && value !== ""));
}
