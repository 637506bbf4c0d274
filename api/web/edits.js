/** Edits: the events that correct, end, pin or forget a memory, and the events that undo them. */

/**
 * @typedef {{type: string, payload: Record<string, any>}} Draft  an event without its id
 * @typedef {{do: Draft, undo: (recorded: {id: string}) => Draft, undoText: string}} Edit
 */

/** The kinds of memories that the viewer edits, with their list. */
export const KINDS = { fact: "facts", preference: "preferences", relationship: "relationships" };

/** Return the statement of a memory as three words: subject, predicate and object. */
export function statement(kind, memory) {
  if (kind === "fact") return [memory.subject, memory.predicate, memory.object];
  if (kind === "relationship") return [memory.source, memory.type, memory.target];
  return [memory.subject || "user", memory.name, memory.value];
}

/** Return whether the viewer can correct memories of a kind: a relationship is ended, and another one stated. */
export function isCorrectable(kind) {
  return kind !== "relationship";
}

/** @returns {Edit} */
export function correction(kind, memory, text) {
  return {
    do: corrected(kind, memory, memory.id, text),
    undo: ({ id }) => corrected(kind, memory, id, kind === "fact" ? memory.object : memory.value),
    undoText: "the old value is stated as a correction of the new one",
  };
}

function corrected(kind, memory, id, text) {
  if (kind === "fact") {
    const { subject, predicate } = memory;
    return { type: "fact.corrected", payload: { subject, predicate, object: text, corrects: id } };
  }
  const { category, strength, standing, name, subject } = memory;
  const payload = { category, strength, standing, key: name, value: text, source_type: "corrected" };
  return { type: "preference.stated", payload: withoutEmpty({ ...payload, subject }) };
}

/** @returns {Edit} */
export function pinning(memory, isPinned) {
  const event = (type) => ({ type, payload: { memory_id: memory.id } });
  const [first, second] = isPinned ? ["memory.unpinned", "memory.pinned"] : ["memory.pinned", "memory.unpinned"];
  return { do: event(first), undo: () => event(second), undoText: isPinned ? "it is pinned again" : "its pin is removed" };
}

/** @returns {Edit} */
export function ending(kind, memory, endedAt, reason) {
  const payload = withoutEmpty({ memory_id: memory.id, ended_at: endedAt, reason });
  return { do: { type: "memory.ended", payload }, undo: () => restated(kind, memory), undoText: "it is stated again, from now on" };
}

/** @returns {Edit} */
export function forgetting(kind, memory, reason) {
  const payload = withoutEmpty({ memory_id: memory.id, reason });
  return { do: { type: "memory.forgotten", payload }, undo: () => restated(kind, memory, true), undoText: "it is stated again, with a new id" };
}

/** Return the event that states a memory that was ended or forgotten, with its sources; a forgotten one with its end. */
function restated(kind, memory, asBefore = false) {
  // A memory that was stated itself is its own source; a forgotten source would keep it forgotten.
  const others = (memory.source_events ?? []).filter((id) => id !== memory.id);
  const source_events = others.length > 0 ? others : null;
  if (kind === "fact") {
    const { subject, predicate, object, type, confidence, layer, conflict_key } = memory;
    const payload = { subject, predicate, object, type, confidence, layer, conflict_key, source_events };
    // It is the user's word from now on: what is older, or inferred, does not bring back what was forgotten.
    const before = asBefore ? { valid_until: memory.valid_until } : {};
    return { type: "fact.stated", payload: withoutEmpty({ ...payload, ...before }) };
  }
  if (kind === "relationship") {
    // Without sources: it comes back in its own row, which has them, and sources from before the end would not undo it.
    const { source, type, target, confidence, properties } = memory;
    return { type: "relationship.stated", payload: withoutEmpty({ source, type, target, confidence, properties }) };
  }
  const { category, name, value, strength, standing, subject } = memory;
  return { type: "preference.stated", payload: withoutEmpty({ category, key: name, value, strength, standing, subject, source_events }) };
}

function withoutEmpty(payload) {
  return Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== null && value !== undefined && value !== ""));
}
