/** App: the frame of the viewer: namespaces, moments, views and the question for a token. */

import { get, onTokenNeeded, setToken } from "./api.js";
import { createMoments } from "./as_of.js";
import { announce, errorNote, h, quoted, replace } from "./dom.js";
import { address, go, readState, VIEWS } from "./state.js";

/** Views are loaded when they are first opened. */
const LOADERS = {
  profile: () => import("./profile.js"),
  map: () => import("./map.js"),
  timeline: () => import("./timeline.js"),
  facts: () => import("./facts.js"),
  ask: () => import("./ask.js"),
  health: () => import("./health.js"),
  review: () => import("./review.js"),
};
/** Namespaces that are offered as a list; of more, the name is typed. */
const NAMESPACES_MAX = 1_000;
/** Namespaces that are named to somebody who asks for one that does not exist. */
const MISSING_LINKS = 20;

const view = document.getElementById("view");
/** @type {HTMLSelectElement | HTMLInputElement} */
let picker = h("select", { id: "namespace" });
const moments = createMoments(document.getElementById("moments"), (asOf) => go({ ...readState(), asOf }));
/** The newest rendering: an older one that is still loading does not replace it. */
let rendering = 0;
/** The view and namespace that are shown or load, so that a change of the moment keeps the focus. */
let shown = "";
/** The namespaces, when all are listed; else null. */
let namespaces = null;

async function start() {
  onTokenNeeded(askForToken);
  addEventListener("hashchange", render);
  // The address is the state of the page, so a link within the page must not change it.
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    view.focus();
  });
  try {
    const page = await get("/v1/namespaces", { limit: NAMESPACES_MAX });
    showPicker(page);
    if (page.next === null) namespaces = page.items.map(({ namespace }) => namespace);
    if (readState().namespace === null && page.items.length) {
      history.replaceState(null, "", address({ ...readState(), namespace: page.items[0].namespace }));
    }
  } catch (error) {
    replace(view, errorNote(error));
    view.removeAttribute("aria-busy");
    document.body.dataset.ready = "error";
    return;
  }
  await render();
}

/** Offer the namespaces of a page; when there are more, a field for any name. */
function showPicker(page) {
  picker = page.next === null
    ? h("select", { id: "namespace" }, page.items.map(({ namespace }) => h("option", { value: namespace }, namespace)))
    : h("input", { id: "namespace", autocomplete: "off", spellcheck: "false" });
  picker.addEventListener("change", () => {
    go({ ...readState(), namespace: picker.value.trim() || null, asOf: null, parameters: new URLSearchParams() });
  });
  replace(document.getElementById("picker"), picker);
}

/** Show the view that the address names. */
async function render() {
  rendering += 1;
  const mine = rendering;
  const state = readState();
  delete document.body.dataset.ready;
  for (const name of VIEWS) {
    const link = document.getElementById(`to-${name}`);
    link.setAttribute("href", address({ ...state, view: name, parameters: new URLSearchParams() }));
    if (name === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  picker.value = state.namespace ?? "";
  document.title = `${document.getElementById(`to-${state.view}`).textContent} · Recollect`;
  const content = h("div", { class: `content ${state.view}` });
  const wasShown = shown;
  shown = `${state.view} ${state.namespace}`;
  // The content of another view never stands under the name of this one.
  if (shown !== wasShown) replace(view, h("h2", {}, document.getElementById(`to-${state.view}`).textContent));
  view.setAttribute("aria-busy", "true");
  try {
    if (state.namespace === null && state.view !== "health") {
      replace(view, h("h2", {}, "No memory yet"),
        h("p", {}, "This server has no namespace. A bot creates one with its first message; the API is described at ",
          h("a", { href: "/docs" }, "/docs"), "."));
    } else {
      const [module, head] = await Promise.all([LOADERS[state.view](), moments.show(state)]);
      if (mine !== rendering) return;
      if (state.view !== "health" && (head === 0 || (head === null && namespaces?.includes(state.namespace) === false))) {
        showMissing(state);
        return;
      }
      await module.show(content, state, { changed: () => moments.refresh(state) });
      if (mine !== rendering) return;
      replace(view, content);
      await module.mounted?.(content);
    }
  } catch (error) {
    if (mine !== rendering) return;
    replace(view, h("h2", {}, "This view cannot be shown"), errorNote(error));
    if (!("status" in error)) console.error(error);
  } finally {
    if (mine === rendering) finish(state, wasShown);
  }
}

function finish(state, wasShown) {
  view.removeAttribute("aria-busy");
  if (wasShown && shown !== wasShown) view.focus({ preventScroll: true });
  announce("");
  document.body.dataset.ready = state.view;
}

/** Say that a namespace does not exist, with links to those that do. */
function showMissing(state) {
  replace(view, h("h2", {}, "No such namespace"),
    h("p", {}, "This server has no namespace called ", quoted(state.namespace), ". It may be misspelled, or its first message has not come yet."),
    h("ul", { class: "rows" }, (namespaces ?? []).slice(0, MISSING_LINKS).map((namespace) => h("li", {},
      h("a", { href: address({ ...state, namespace, asOf: null, parameters: new URLSearchParams() }) }, quoted(namespace))))));
}

/** Ask for a token; return it, or null when the user does not give one. It is kept in this tab alone. */
function askForToken(reason) {
  const dialog = document.getElementById("token-dialog");
  const input = document.getElementById("token");
  document.getElementById("token-reason").textContent = reason;
  input.value = "";
  return new Promise((resolve) => {
    const form = dialog.querySelector("form");
    const finish = (token) => {
      form.removeEventListener("submit", submitted);
      dialog.removeEventListener("cancel", cancelled);
      dialog.close();
      setToken(token);
      resolve(token);
    };
    const submitted = (event) => {
      event.preventDefault();
      finish(input.value.trim() || null);
    };
    const cancelled = (event) => {
      event.preventDefault();
      finish(null);
    };
    form.addEventListener("submit", submitted);
    dialog.addEventListener("cancel", cancelled);
    document.body.dataset.ready = "token";
    if (!dialog.open) dialog.showModal();
    input.focus();
  });
}

start();
