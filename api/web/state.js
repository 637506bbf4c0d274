/** State: the view, the namespace and the moment that the page shows, kept in the address so that a link restores it. */

/**
 * @typedef {object} State
 * @property {string} view
 * @property {string | null} namespace
 * @property {number | null} asOf  a version; null: now
 * @property {URLSearchParams} parameters  further parameters of the view
 */

export const VIEWS = ["profile", "map", "timeline", "facts", "ask", "health", "review"];

/** Return the state that the address names. */
export function readState() {
  const [view, query] = location.hash.slice(1).split("?", 2);
  const parameters = new URLSearchParams(query ?? "");
  const asOf = parameters.get("as_of");
  const namespace = parameters.get("namespace");
  parameters.delete("as_of");
  parameters.delete("namespace");
  return {
    view: VIEWS.includes(view) ? view : "profile",
    namespace,
    asOf: asOf !== null && /^[0-9]{1,11}$/.test(asOf) ? Number(asOf) : null,
    parameters,
  };
}

/** Return the address of a state. */
export function address({ view, namespace, asOf, parameters = new URLSearchParams() }) {
  const query = new URLSearchParams();
  if (namespace !== null) query.set("namespace", namespace);
  if (asOf !== null) query.set("as_of", String(asOf));
  for (const [name, value] of parameters) query.set(name, value);
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

/** Go to a state. The page follows the address. */
export function go(state) {
  location.hash = address(state);
}
