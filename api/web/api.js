/** API: sends requests to the public routes of the server, with the token of this tab. */

const TOKEN = "recollect.token";
/** Times that a read model of the past is asked for again while the server builds it, a second apart. */
const BUILDS_MAX = 30;

/** An error that the server answered, in its own words. */
export class Problem extends Error {
  constructor(status, detail, name) {
    super(detail);
    this.status = status;
    this.error = name;
  }
}

/** @type {() => Promise<string | null>} */
let askForToken = async () => null;
/** @type {Promise<string | null> | null} */
let asking = null;

/** Set the function that asks the user for a token; requests that are refused without one wait for it. */
export function onTokenNeeded(ask) {
  askForToken = ask;
}

/** Return whether this tab has a token. */
export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

/** Keep a token until the tab is closed; null forgets it. */
export function setToken(token) {
  if (token === null) sessionStorage.removeItem(TOKEN);
  else sessionStorage.setItem(TOKEN, token);
}

/**
 * Return the JSON of a GET. Query parameters that are null or empty are left out; a list repeats its parameter.
 * @param {string} path
 * @param {Record<string, any>} [query]
 */
export function get(path, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(query)) {
    for (const value of [values].flat()) {
      if (value !== null && value !== undefined && value !== "") parameters.append(name, String(value));
    }
  }
  const text = parameters.toString();
  return request("GET", text ? `${path}?${text}` : path, undefined);
}

/** Return the JSON of a POST. */
export function post(path, body = {}) {
  return request("POST", path, body);
}

/** Return the path of a route of a namespace; each further part is one encoded segment. */
export function namespacePath(namespace, ...parts) {
  return ["/v1/namespaces", encodeURIComponent(namespace), ...parts.map(encodeURIComponent)].join("/");
}

async function request(method, path, body) {
  for (let attempt = 0; ; attempt += 1) {
    const response = await send(method, path, body);
    if (response.ok) return response.json();
    const problem = await problemOf(response);
    if (response.status === 401 && attempt < 5) {
      // Several requests that are refused at once share one question.
      asking ??= askForToken(problem.message).finally(() => { asking = null; });
      if ((await asking) !== null) continue;
    }
    if (method === "GET" && problem.error === "StillBuilding" && attempt < BUILDS_MAX) {
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      continue;
    }
    throw problem;
  }
}

async function send(method, path, body) {
  const headers = new Headers();
  const token = sessionStorage.getItem(TOKEN);
  if (token !== null) headers.set("Authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("Content-Type", "application/json");
  try {
    return await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Problem(0, "The server does not answer; is it running?", "Unreachable");
  }
}

async function problemOf(response) {
  try {
    const body = await response.json();
    return new Problem(response.status, body.detail ?? `${response.status} ${response.statusText}`, body.error);
  } catch {
    return new Problem(response.status, `${response.status} ${response.statusText}`, undefined);
  }
}
