/** OpenAPI: the routes of the server with their parameters, bodies and answers, from its own description. */

import { get } from "./api.js";
import { append, errorNote, field, h } from "./dom.js";

/** Levels of a schema that are written out; deeper ones are named. */
const LEVELS_MAX = 4;

async function start() {
  const main = document.getElementById("routes");
  try {
    const description = await get("/openapi.json");
    const routes = Object.entries(description.paths).flatMap(([path, methods]) => Object.entries(methods)
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })));
    const parts = [...Map.groupBy(routes, ({ operation }) => operation.tags?.[0] ?? "server")].map(([tag, members]) => h("section", {},
      h("h3", {}, tag), members.map((route) => routeElement(description, route))));
    const find = h("input", { type: "search", placeholder: "erase, POST, /facts …", oninput: () => filter(main, find.value) });
    append(main, [h("p", { class: "hint" }, description.info.description ?? ""), field("Find", find), parts]);
  } catch (error) {
    append(main, [errorNote(error)]);
  }
  main.removeAttribute("aria-busy");
}

function filter(main, text) {
  const words = text.toLowerCase().split(/\s+/);
  for (const route of main.querySelectorAll("details")) {
    const summary = route.firstElementChild.textContent.toLowerCase();
    route.hidden = !words.every((word) => summary.includes(word));
  }
  for (const section of main.querySelectorAll("section")) section.hidden = !section.querySelector("details:not([hidden])");
}

function routeElement({ components }, { path, method, operation }) {
  const details = h("details", { class: "memory" }, h("summary", {}, h("code", {}, `${method} ${path}`), ` ${operation.summary ?? ""}`));
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const body = operation.requestBody?.content ?? {};
    append(details, [h("p", {}, operation.description ?? ""), parameters(operation.parameters ?? [], components),
      ...Object.entries(body).map(([type, { schema }]) => [h("h4", {}, `Body, ${type}`), schemaText(schema, components)]),
      ...Object.entries(operation.responses ?? {}).map(([status, { description, content }]) => [h("h4", {}, `${status} ${description}`),
        Object.values(status < "300" ? content ?? {} : {}).map(({ schema }) => schemaText(schema, components))])]);
  });
  return details;
}

function parameters(list, components) {
  if (!list.length) return null;
  return h("dl", {}, list.map(({ name, in: place, required, description, schema }) => [h("dt", {}, h("code", {}, name)),
    h("dd", {}, [place, required ? "required" : null, JSON.stringify(written(schema, components, LEVELS_MAX - 1)), description].filter(Boolean).join(" · "))]));
}

function schemaText(schema, components) {
  return h("pre", { tabindex: 0, class: "context" }, JSON.stringify(written(schema, components, 0), null, 2));
}

/** Return a schema in short: fields with their types, references written out to a few levels. */
function written(schema, components, level) {
  if (!schema) return "any";
  const name = schema.$ref?.split("/").at(-1);
  if (name) return level < LEVELS_MAX ? written(components.schemas[name], components, level) : name;
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.length > 8 ? `one of ${choices.length} shapes` : choices.map((choice) => written(choice, components, level + 1));
  if (schema.enum || schema.const !== undefined) return schema.enum ?? [schema.const];
  if (schema.type === "array") return [written(schema.items, components, level + 1)];
  if (!schema.properties) return [schema.type ?? "any", schema.format].filter(Boolean).join(" ");
  if (level >= LEVELS_MAX) return schema.title ?? "object";
  return Object.fromEntries(Object.entries(schema.properties).map(([field, value]) => [
    schema.required?.includes(field) ? `${field} (required)` : field, written(value, components, level + 1)]));
}

start();
