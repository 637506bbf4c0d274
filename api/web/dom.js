/** Elements: creates HTML and SVG elements whose text is never read as markup, and formats times and numbers. */

const SVG = "http://www.w3.org/2000/svg";

/** Characters of a text that is shown as a whole: half a screen of a phone. */
const CLIPPED_MAX = 700;

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Return an HTML element. Attributes that begin with `on` are listeners; those that are false or null are left out.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/**
 * Return an SVG element, as `h` does.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  append(element, children);
  return element;
}

/** Append children; texts become text nodes. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** Replace the children of an element. */
export function replace(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Return text of a memory: isolated, so that its marks of direction change nothing around it. */
export function quoted(text) {
  return h("bdi", {}, text ?? "");
}

/** Return text of a memory with its line breaks. */
export function passage(text) {
  return h("p", { class: "passage", dir: "auto" }, text ?? "");
}

/** Return text of a memory with its line breaks, of which the end of a long one is shown on request. */
export function clippedPassage(text) {
  if ((text ?? "").length <= CLIPPED_MAX) return passage(text);
  const whole = passage(text);
  whole.tabIndex = -1;
  const clipped = h("div", {}, passage(`${text.slice(0, CLIPPED_MAX - 200).trimEnd()} …`), h("button", {
    type: "button", class: "link", onclick: () => {
      clipped.replaceWith(whole);
      whole.focus({ preventScroll: true });
    },
  }, `All ${number(text.length)} characters`));
  return clipped;
}

/** Return a memory of any kind as text. */
export function memoryText(memory) {
  const { subject, source, predicate, name, type, object, value, target } = memory;
  const said = [subject ?? source, predicate ?? name ?? type, object ?? value ?? target];
  return memory.text ?? memory.description ?? memory.trigger ?? said.filter(Boolean).join(" ");
}

const DATE = { day: "numeric", month: "short", year: "numeric" };
const DATE_TIME = { ...DATE, hour: "2-digit", minute: "2-digit" };

/** Return a time as text: in its own zone when it has one, else in that of the browser. */
function formatted(iso, format) {
  if (!iso) return "";
  const local = /^(.{19}).*[+-]\d\d:\d\d$/.exec(iso);
  return local
    ? new Intl.DateTimeFormat(undefined, { ...format, timeZone: "UTC" }).format(new Date(`${local[1]}Z`))
    : new Intl.DateTimeFormat(undefined, format).format(new Date(iso));
}

/** Return a date as text. */
export function dateText(iso) {
  return formatted(iso, DATE);
}

/** Return a date and time as text. */
export function timeText(iso) {
  return formatted(iso, DATE_TIME);
}

/** Return a `time` element; the exact time is its title. */
export function time(iso, text = timeText) {
  return iso ? h("time", { datetime: iso, title: iso }, text(iso)) : "";
}

/** Return a number with separators. */
export function number(value) {
  return new Intl.NumberFormat().format(value);
}

/** Return a number of bytes as text. */
export function bytesText(count) {
  if (count < 1_000) return `${count} B`;
  const [unit, size] = count < 1e6 ? ["kB", 1e3] : count < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${(count / size).toFixed(count / size < 10 ? 1 : 0)} ${unit}`;
}

/** Return a badge: a short word with a colour by `tone`. */
export function badge(text, tone = "plain") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** Return a label with its control. */
export function field(label, control) {
  return h("label", { class: "field" }, h("span", {}, label), control);
}

/** Return a select with options, pairs of value and text. */
export function select(name, options, chosen, onchange) {
  return h("select", { name, onchange },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
}

/** Return a text area in which Enter sends its form, and Shift+Enter begins a line. */
export function enterSends(area) {
  area.addEventListener("keydown", (event) => {
    // Enter also ends the composition of a character.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    area.form.requestSubmit();
  });
  return area;
}

/** Return a paragraph with the message of an error. */
export function errorNote(error) {
  return h("p", { class: "error", role: "alert" }, error.message);
}

/** Show a short message in the status line of the page. */
export function announce(text) {
  document.getElementById("status").textContent = text;
}
