/** Map: entities and what connects them, drawn as SVG; hovering shows neighbours, or the path from a pinned entity. */

import { get, namespacePath } from "./api.js";
import { append, h, number, quoted, replace, svg } from "./dom.js";
import { buildGraph, pathText, shortestPath } from "./graph.js";
import { hull, layOut, placeLabels } from "./layout.js";
import { createNodeList } from "./node_list.js";
import { address } from "./state.js";

/** Entities that are asked for: all that the route returns. */
const ENTITIES_MAX = 5_000;
/** Labels that are drawn at once; every other name is shown when the pointer is on its node. */
const LABELS_MAX = 80;
const LABEL_CHARACTERS_MAX = 26;
/** Neighbours that the status line names. */
const NEIGHBOURS_MAX = 8;
/** Colours of the outlines of clusters in the style sheet. */
const CLUSTER_COLOURS = 6;
/** Factor of one step of the zoom. */
const ZOOM_STEP = 1.35;

const OUTLINES = {
  person: (r) => `M${r} 0A${r} ${r} 0 1 1 ${-r} 0A${r} ${r} 0 1 1 ${r} 0Z`,
  location: (r) => polygon(4, r * 1.25, 0),
  organization: (r) => polygon(4, r * 1.25, Math.PI / 4),
  project: (r) => polygon(6, r * 1.1, 0),
  event: (r) => polygon(3, r * 1.35, -Math.PI / 2),
  animal: (r) => polygon(5, r * 1.15, -Math.PI / 2),
  product: (r) => polygon(3, r * 1.35, Math.PI / 2),
  work: (r) => star(r * 1.35),
  tool: (r) => cross(r * 1.15),
  concept: (r) => polygon(8, r * 1.05, Math.PI / 8),
  value: (r) => `M${-r} ${-r * 0.7}H${r}V${r * 0.7}H${-r}Z`,
  values: (r) => `M${-r} ${-r * 0.7}H${r}V${r * 0.7}H${-r}Z`,
  cluster: (r) => polygon(12, r, 0),
};

function polygon(corners, radius, turn) {
  const points = Array.from({ length: corners }, (_, at) => {
    const angle = turn + (2 * Math.PI * at) / corners;
    return `${(radius * Math.cos(angle)).toFixed(1)} ${(radius * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

function star(radius) {
  const points = Array.from({ length: 10 }, (_, at) => {
    const [reach, angle] = [at % 2 ? radius * 0.5 : radius, (Math.PI * at) / 5 - Math.PI / 2];
    return `${(reach * Math.cos(angle)).toFixed(1)} ${(reach * Math.sin(angle)).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

function cross(r) {
  const t = r / 3;
  return `M${-t} ${-r}H${t}V${-t}H${r}V${t}H${t}V${r}H${-t}V${t}H${-r}V${-t}H${-t}Z`;
}

/** Return the outline of a node; types that the viewer does not know are rings. */
function outline(node, radius) {
  return (OUTLINES[node.type] ?? OUTLINES.person)(radius);
}

function typeClass(node) {
  return node.type in OUTLINES ? node.type : "other";
}

function radiusOf(node) {
  if (node.kind === "value") return 5;
  if (node.type === "values") return 9;
  return node.kind === "cluster" ? 16 : Math.min(15, 6 + 1.4 * Math.sqrt(node.mentions + node.degree));
}

function shortLabel(text) {
  return text.length > LABEL_CHARACTERS_MAX ? `${text.slice(0, LABEL_CHARACTERS_MAX - 1)}…` : text;
}

let model;

/** Show the map of a namespace. */
export async function show(content, state) {
  const answer = await get(namespacePath(state.namespace, "map"), { limit: ENTITIES_MAX, as_of: state.asOf });
  model = createMap(content, state, answer);
}

/** Draw the map once its place in the page, and so its size, is known. */
export function mounted() {
  model.draw();
}

function createMap(content, state, answer) {
  const options = { facts: true, together: true, ended: true, cluster: null, hub: null };
  /** @type {import("./graph.js").Graph} */
  let graph;
  let positions;
  let size = [0, 0];
  let box = [0, 0, 0, 0];
  let pinned = -1;
  let active = -1;
  let groups = [];
  let lines = [];
  /** @type {Map<number, Element>} */
  let labelOf = new Map();
  /** @type {Set<Element>} */
  let lit = new Set();

  const stage = h("div", { class: "stage" });
  const line = h("p", { class: "path", role: "status", id: "map-status" });
  const details = h("section", { class: "details", "aria-label": "Pinned entity", hidden: true });
  const list = createNodeList({ hover, pin, clear: () => pin(-1) });
  const legend = h("ul", { class: "legend", "aria-label": "Types" });
  const back = h("button", { type: "button", class: "quiet", hidden: true, onclick: () => open({}) }, "Overview");

  const toggle = (name, text) => h("label", { class: "check" }, h("input", {
    type: "checkbox", checked: options[name], name, onchange: (event) => {
      options[name] = event.target.checked;
      draw();
    },
  }), text);
  const zoom = h("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
    h("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoomBy(1 / ZOOM_STEP) }, "+"),
    h("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoomBy(ZOOM_STEP) }, "−"),
    h("button", { type: "button", "aria-label": "Show all", onclick: () => setBox(0, 0, ...size) }, "⤢"));
  append(content, [
    h("div", { class: "title" }, h("h2", {}, "Map"), h("span", { class: "count", id: "map-count" })),
    h("div", { class: "toolbar" }, toggle("facts", "Facts"), toggle("together", "Mentioned together"),
      toggle("ended", "Ended"), back, zoom),
    h("div", { class: "columns" }, h("div", {}, stage, legend), h("div", { class: "side" }, line, list.element, details)),
  ]);

  const observer = new ResizeObserver(() => {
    if (!stage.isConnected) observer.disconnect();
    else if (Math.abs(stage.clientWidth - size[0]) > 1 && size[0]) draw();
  });
  observer.observe(stage);

  /** Draw what a cluster node stands for; without one, the overview. */
  function open({ cluster = null, hub = null }) {
    Object.assign(options, { cluster, hub });
    back.hidden = cluster === null && hub === null;
    draw();
  }

  function draw() {
    const key = pinned >= 0 ? graph.nodes[pinned]?.key : null;
    graph = buildGraph(answer, options);
    size = [Math.max(280, stage.clientWidth), Math.max(340, stage.clientHeight)];
    positions = layOut(graph, ...size, radiusOf);
    paint();
    showLegend();
    list.fill(graph.nodes);
    pinned = graph.nodes.findIndex((node) => node.key === key);
    active = -1;
    showCount();
    mark();
  }

  function showCount() {
    const shown = graph.nodes.filter((node) => node.kind === "entity").length;
    const text = `${number(shown)} of ${number(answer.total)} entities, ${number(graph.edges.length)} connections`;
    content.querySelector("#map-count").textContent = text;
    stage.classList.toggle("empty", !graph.nodes.length);
    if (!graph.nodes.length) {
      replace(stage, h("p", { class: "hint" }, state.asOf === null
        ? "No entities yet: they appear when the messages are read for facts, seconds after they were appended."
        : "At this moment the memory knew no entities."));
    }
  }

  function paint() {
    const [width, height] = size;
    const at = (index) => [positions.x[index], positions.y[index]];
    lines = graph.edges.map((edge, index) => {
      const [[x1, y1], [x2, y2]] = [at(edge.a), at(edge.b)];
      return svg("line", { class: `edge ${edge.kind}${edge.ended ? " ended" : ""}`, "data-edge": index, x1, y1, x2, y2 });
    });
    groups = graph.nodes.map((node, index) => svg("g", {
      class: `node ${typeClass(node)}`, "data-node": index, transform: `translate(${at(index).map((v) => v.toFixed(1)).join(" ")})`,
    }, svg("circle", { class: "target", r: Math.max(12, radiusOf(node)) }), svg("path", { d: outline(node, radiusOf(node)) })));
    const picture = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Map of entities; the list of entities drives it by keyboard",
    }, svg("g", {}, hulls()), svg("g", {}, lines), svg("g", {}, groups), svg("g", {}, labels()),
    svg("text", { class: "float", "text-anchor": "middle" }));
    listen(picture);
    replace(stage, picture);
    setBox(0, 0, width, height);
  }

  function hulls() {
    const points = new Map();
    graph.nodes.forEach((node, index) => {
      const of = points.get(node.cluster) ?? [];
      of.push([positions.x[index], positions.y[index]]);
      points.set(node.cluster, of);
    });
    return [...points].filter(([, of]) => of.length > 2).map(([cluster, of], rank) => svg("path", {
      class: `hull hull-${rank % CLUSTER_COLOURS}`, "data-cluster": cluster,
      d: `M${hull(of, 20).map((point) => point.map((v) => v.toFixed(1)).join(" ")).join("L")}Z`,
    }));
  }

  function labels() {
    const order = graph.nodes.map((_, index) => index).sort((a, b) => weight(b) - weight(a) || a - b);
    const nodeAt = (index) => ({
      x: positions.x[index], y: positions.y[index], radius: radiusOf(graph.nodes[index]), text: shortLabel(graph.nodes[index].label),
    });
    lit = new Set();
    labelOf = new Map([...placeLabels(order, nodeAt, ...size, LABELS_MAX)].map(([index, place]) => [index, svg("text", {
      class: `label ${graph.nodes[index].kind}`, x: place.x, y: place.y, "text-anchor": place.anchor,
    }, shortLabel(graph.nodes[index].label))]));
    return [...labelOf.values()];
  }

  function weight(index) {
    const node = graph.nodes[index];
    return node.kind === "value" ? 0 : 1 + node.degree + node.mentions + (node.kind === "cluster" ? 1_000 : 0);
  }

  function listen(picture) {
    const nodeOf = (event) => Number(event.target.closest?.("[data-node]")?.dataset.node ?? -1);
    picture.addEventListener("pointerover", (event) => hover(nodeOf(event)));
    picture.addEventListener("pointerleave", () => hover(-1));
    let dragged = null;
    picture.addEventListener("pointerdown", (event) => {
      dragged = { x: event.clientX, y: event.clientY, box: [...box], moved: false };
    });
    picture.addEventListener("pointermove", (event) => {
      if (!dragged || !event.buttons) return;
      const [dx, dy] = [event.clientX - dragged.x, event.clientY - dragged.y];
      dragged.moved ||= Math.hypot(dx, dy) > 5;
      const scale = dragged.box[2] / picture.clientWidth;
      if (dragged.moved) setBox(dragged.box[0] - dx * scale, dragged.box[1] - dy * scale, dragged.box[2], dragged.box[3]);
    });
    picture.addEventListener("click", (event) => {
      if (dragged?.moved) return;
      const index = nodeOf(event);
      // A finger does not hover: with a pin, a tap shows the path.
      if (event.pointerType === "touch" && pinned >= 0 && index >= 0 && index !== pinned) hover(index);
      else pin(index);
    });
    picture.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
    }, { passive: false });
  }

  function zoomBy(factor) {
    const [x, y, width, height] = box;
    const scale = Math.min(1.5, Math.max(0.08, (width * factor) / size[0])) / (width / size[0]);
    setBox(x + (width * (1 - scale)) / 2, y + (height * (1 - scale)) / 2, width * scale, height * scale);
  }

  function setBox(x, y, width, height) {
    box = [x, y, width, height];
    const picture = stage.querySelector("svg");
    if (!picture) return;
    picture.setAttribute("viewBox", box.map((v) => v.toFixed(1)).join(" "));
    // Texts keep their size while the picture grows.
    picture.style.setProperty("--scale", String(Math.min(1.4, width / size[0])));
  }

  function hover(index) {
    if (index === active) return;
    active = index;
    mark();
  }

  /** Pin a node, open a cluster node, or unpin. */
  function pin(index) {
    const node = graph.nodes[index];
    if (node?.kind === "cluster") {
      open(node.hub === undefined ? { cluster: node.members[0] } : { cluster: options.cluster, hub: node.hub });
      return;
    }
    pinned = index === pinned ? -1 : index;
    mark();
    showDetails();
  }

  /** Mark the active node with its neighbours, or the path to it from the pinned one, and say it in words. */
  function mark() {
    const picture = stage.querySelector("svg");
    if (!picture) return;
    const nodes = new Set();
    const edges = new Set();
    let text = "Point at an entity to see its neighbours, or choose one from the list. Click pins it.";
    const focus = active >= 0 ? active : pinned;
    if (pinned >= 0 && active >= 0 && active !== pinned) {
      const path = shortestPath(graph, pinned, active);
      nodes.add(pinned).add(active);
      path?.forEach((step) => {
        nodes.add(step.from).add(step.to);
        edges.add(step.edge);
      });
      text = path ? pathText(graph, path) : `No path from ${graph.nodes[pinned].label} to ${graph.nodes[active].label}`;
    } else if (focus >= 0) {
      nodes.add(focus);
      graph.adjacency[focus].forEach(({ node, edge }) => {
        nodes.add(node);
        edges.add(edge);
      });
      text = neighbourText(focus);
    }
    picture.classList.toggle("marked", focus >= 0);
    // Only what changes is touched: a class on all elements costs 100 ms in a large map.
    const next = new Set([...nodes].flatMap((index) => [groups[index], labelOf.get(index)]).filter(Boolean));
    edges.forEach((index) => next.add(lines[index]));
    lit.forEach((element) => { if (!next.has(element)) element.classList.remove("on"); });
    next.forEach((element) => { if (!lit.has(element)) element.classList.add("on"); });
    lit = next;
    picture.querySelector(".pinned")?.classList.remove("pinned");
    groups[pinned]?.classList.add("pinned");
    float(picture, active);
    list.mark(active, pinned);
    line.textContent = text;
  }

  /** Show the whole name of the active node above it. */
  function float(picture, index) {
    const text = picture.querySelector(".float");
    picture.querySelector(".covered")?.classList.remove("covered");
    text.textContent = index >= 0 ? graph.nodes[index].label.slice(0, 60) : "";
    if (index < 0) return;
    const node = graph.nodes[index];
    const half = Math.min(60, node.label.length) * 3.6;
    text.setAttribute("x", String(Math.min(size[0] - half, Math.max(half, positions.x[index]))));
    text.setAttribute("y", String(Math.max(14, positions.y[index] - radiusOf(node) - 7)));
    labelOf.get(index)?.classList.add("covered");
  }

  function neighbourText(index) {
    const node = graph.nodes[index];
    if (node.hub !== undefined) return `${node.label}: click to open`;
    const near = graph.adjacency[index].map(({ node: other, edge }) => {
      const { kind, label, ended } = graph.edges[edge];
      return `${kind === "together" ? "" : `${label} `}${graph.nodes[other].label}${ended ? " (ended)" : ""}`;
    });
    const more = near.length > NEIGHBOURS_MAX ? ` and ${near.length - NEIGHBOURS_MAX} more` : "";
    const what = node.kind === "entity" ? `${node.type}, in ${node.mentions} messages` : node.kind === "value" ? "stated value" : "cluster";
    return `${node.label} (${what})${near.length ? `: ${near.slice(0, NEIGHBOURS_MAX).join("; ")}${more}` : ""}`;
  }

  function showDetails() {
    const node = graph.nodes[pinned];
    details.hidden = !node || node.kind !== "entity";
    if (details.hidden) return;
    const entries = graph.adjacency[pinned].map(({ node: other, edge }) => {
      const { kind, label, ended, a } = graph.edges[edge];
      const name = quoted(graph.nodes[other].label);
      const words = kind === "together" ? ["named together with ", name]
        : a === pinned ? [`${label} `, name] : [name, ` → ${label}`];
      return h("li", { class: ended ? "ended" : null }, words, ended ? " (ended)" : "");
    });
    const parameters = new URLSearchParams({ subject: node.label });
    replace(details, h("h3", {}, quoted(node.label)), h("ul", {}, entries),
      h("a", { href: address({ ...state, view: "facts", parameters }) }, "Its facts"));
  }

  function showLegend() {
    const types = new Map();
    graph.nodes.forEach((node) => types.set(node.type, [...(types.get(node.type) ?? []), node]));
    const words = { value: "stated value", values: "more stated values", cluster: "more entities" };
    replace(legend, [...types].sort((a, b) => b[1].length - a[1].length).map(([type, nodes]) => h("li", {},
      svg("svg", { class: "swatch", viewBox: "-9 -9 18 18", width: 16, height: 16, "aria-hidden": "true" },
        svg("g", { class: `node ${typeClass(nodes[0])}` }, svg("path", { d: outline(nodes[0], 6) }))),
      `${words[type] ?? type} ${number(nodes.length)}`)),
    h("li", {}, svg("svg", { class: "swatch", viewBox: "0 0 24 10", width: 24, height: 10, "aria-hidden": "true" },
      svg("line", { class: "edge fact ended", x1: 0, y1: 5, x2: 24, y2: 5 })), "ended"));
  }

  return { draw };
}
