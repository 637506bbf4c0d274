/** Edits: the events that correct, end, pin or forget a memory; the server undoes each by its id. */

/**
 * @typedef {{type: string, payload: Record<string, any>}} Draft  an event without its id
 */

/** The kinds of memories that the viewer edits, with their list. */
export const KINDS = { fact: "facts", preference: "preferences", relationship: "relationships" };

/** Return the statement of a memory as three words: subject, predicate and object. */
export function statement(kind, memory) {
  if (kind === "fact" && memory.statement) return [memory.statement, "", ""];
  if (kind === "fact") return [memory.subject, memory.predicate === "says" ? "said:" : memory.predicate, memory.object];
  if (kind === "relationship") return [memory.source, memory.type, memory.target];
  return [memory.subject || "user", memory.name, memory.value];
}

/** Return whether the viewer can correct memories of a kind: a relationship is ended, and another one stated. */
export function isCorrectable(kind) {
  return kind !== "relationship";
}

/** @returns {Draft} */
export function correction(kind, memory, text) {
  if (kind === "fact") {
    const { subject, predicate, id } = memory;
    return { type: "fact.corrected", payload: { subject, predicate, object: text, corrects: id } };
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

function withoutEmpty(payload) {
  return Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== null && value !== undefined && value !== ""));
}
