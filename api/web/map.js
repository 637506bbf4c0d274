/** Map: entities and what connects them, drawn as SVG; hovering shows neighbours, or the path from a pinned entity. */

import { get, namespacePath } from "./api.js";
import { append, h, number, quoted, replace, svg } from "./dom.js";
import { buildGraph, pathText, shortestPath } from "./graph.js";
import { hull, layOut, placeLabels } from "./layout.js";
import { createNodeList } from "./node_list.js";
import { address, go } from "./state.js";

/** Entities that are asked for: all that the route returns. */
const ENTITIES_MAX = 5_000;
/** Labels that are drawn at once; every other name is shown when the pointer is on its node. */
const LABELS_MAX = 80;
const LABEL_CHARACTERS_MAX = 26;
/** Neighbours that the status line names. */
const NEIGHBOURS_MAX = 8;
/** Colours of the outlines of clusters in the style sheet. */
const CLUSTER_COLOURS = 6;
/** Stated values of an entity that are drawn; more are read in Memories, since a star of them shows nothing. */
const VALUES_MAX = 60;
/** Share of the picture that an arrow key moves. */
const MOVE_STEP = 0.15;
/** Width in pixels below which nodes are smaller, and those that stand for others have their number as a label. */
const NARROW = 600;
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
  document: (r) => `M${-r * 0.8} ${-r * 1.1}H${r * 0.3}L${r * 0.8} ${-r * 0.5}V${r * 1.1}H${-r * 0.8}Z`,
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
  if (node.kind === "document") return 9;
  if (node.type === "values") return 9;
  return node.kind === "cluster" ? 16 : Math.min(15, 6 + 1.4 * Math.sqrt(node.mentions + node.degree));
}

let model;

/** Show the map of a namespace. */
export async function show(content, state, { changed }) {
  const load = () => get(namespacePath(state.namespace, "map"), { limit: ENTITIES_MAX, as_of: state.asOf });
  model = createMap(content, state, await load(), async () => {
    await changed();
    return load();
  });
}

/** Draw the map once its place in the page, and so its size, is known. */
export function mounted() {
  model.draw();
}

/** Return the parameters of Memories about an entity. */
function subjectOf(node) {
  return new URLSearchParams({ subject: node.label });
}

function createMap(content, state, answer, reload) {
  const options = { facts: true, documents: true, together: true, ended: true, cluster: null, hub: null, pixels: 0 };
  /** @type {import("./graph.js").Graph} */
  let graph;
  let positions;
  let size = [0, 0];
  let isNarrow = false;
  let box = [0, 0, 0, 0];
  let pinned = -1;
  let active = -1;
  let groups = [];
  let lines = [];
  /** @type {Map<number, Element>} */
  let labelOf = new Map();
  /** @type {Set<Element>} */
  let lit = new Set();
  /** @type {import("./memory_row.js").Editor | null} */
  let editor = null;

  const stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": "Map: arrow keys move it, + and − zoom", onkeydown: moveByKey });
  const line = h("p", { class: "path", role: "status", id: "map-status" });
  const details = h("section", { class: "details", "aria-label": "What is pinned", tabindex: 0, hidden: true });
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
    h("div", { class: "toolbar" }, toggle("facts", "Facts"), answer.documents.length ? toggle("documents", "Documents") : null, toggle("together", "Mentioned together"),
      toggle("ended", "Ended"), back, zoom),
    h("div", { class: "columns" }, h("div", {}, stage, legend), h("div", { class: "side" }, line, list.element, details)),
  ]);

  const observer = new ResizeObserver(() => {
    if (!stage.isConnected) observer.disconnect();
    else if (Math.abs(stage.clientWidth - size[0]) > 1 && size[0]) draw();
  });
  observer.observe(stage);

  /** Draw what a cluster node stands for, and pin a node of it if `key` names one; without a cluster, the overview. */
  function open({ cluster = null, hub = null, key = null }) {
    Object.assign(options, { cluster, hub });
    back.hidden = cluster === null && hub === null;
    draw(key);
  }

  function draw(wanted = null) {
    const key = wanted ?? graph?.nodes[pinned]?.key;
    size = [Math.max(280, stage.clientWidth), Math.max(340, stage.clientHeight)];
    graph = buildGraph(answer, { ...options, pixels: size[0] * size[1] });
    isNarrow = size[0] < NARROW;
    positions = layOut(graph, ...size, radius);
    paint();
    showLegend();
    list.fill([...graph.nodes.map((node, place) => ({ ...node, place })), ...graph.rest]);
    pinned = graph.nodes.findIndex((node) => node.key === key);
    active = -1;
    showCount();
    mark();
    showDetails();
  }

  function showCount() {
    const shown = graph.nodes.filter((node) => node.kind === "entity").length;
    const documents = answer.documents.length ? `, ${number(answer.documents.length)} documents` : "";
    const text = `${number(shown)} of ${number(answer.total)} entities${documents}, ${number(graph.edges.length)} connections`;
    content.querySelector("#map-count").textContent = text;
    stage.classList.toggle("empty", !graph.nodes.length);
    if (!graph.nodes.length) {
      replace(stage, h("p", { class: "hint" }, state.asOf === null
        ? "No entities yet: they appear when the messages are read for facts, seconds after they were appended."
        : "At this moment the memory knew no entities."));
    }
  }

  function radius(node) {
    return radiusOf(node) * (isNarrow ? 0.7 : 1);
  }

  /** Return the label of a node in the picture. */
  function shortLabel({ label, kind, hub, members }) {
    if (isNarrow && kind === "cluster") return hub === undefined ? `+${members.length}` : `${members.length} facts`;
    return label.length > LABEL_CHARACTERS_MAX ? `${label.slice(0, LABEL_CHARACTERS_MAX - 1)}…` : label;
  }

  function paint() {
    const [width, height] = size;
    const at = (index) => [positions.x[index], positions.y[index]];
    lines = graph.edges.map((edge, index) => {
      const [[x1, y1], [x2, y2]] = [at(edge.a), at(edge.b)];
      return svg("line", { class: `edge ${edge.kind}${edge.ended ? " ended" : ""}`, "data-edge": index, x1, y1, x2, y2 });
    });
    groups = graph.nodes.map((node, index) => svg("g", {
      class: `node ${typeClass(node)}${node.review === "waiting" ? " waiting" : ""}`, "data-node": index, transform: `translate(${at(index).map((v) => v.toFixed(1)).join(" ")})`,
    }, svg("circle", { class: "target", r: Math.max(12, radius(node)) }), svg("path", { d: outline(node, radius(node)) })));
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
    return [...points].filter(([cluster, of]) => cluster >= 0 && of.length > 2).map(([cluster, of], rank) => svg("path", {
      class: `hull hull-${rank % CLUSTER_COLOURS}`, "data-cluster": cluster,
      d: `M${hull(of, 20).map((point) => point.map((v) => v.toFixed(1)).join(" ")).join("L")}Z`,
    }));
  }

  function labels() {
    const order = graph.nodes.map((_, index) => index).sort((a, b) => weight(b) - weight(a) || a - b);
    const nodeAt = (index) => ({
      x: positions.x[index], y: positions.y[index], radius: radius(graph.nodes[index]), text: shortLabel(graph.nodes[index]),
    });
    lit = new Set();
    labelOf = new Map([...placeLabels(order, nodeAt, ...size, LABELS_MAX)].map(([index, place]) => [index, svg("text", {
      class: `label ${graph.nodes[index].kind}`, x: place.x, y: place.y, "text-anchor": place.anchor,
    }, shortLabel(graph.nodes[index]))]));
    return [...labelOf.values()];
  }

  function weight(index) {
    const node = graph.nodes[index];
    if (node.kind === "value") return 0;
    if (isNarrow && node.kind === "cluster") return node.members.length;
    return 1 + node.degree + node.mentions + (node.kind === "cluster" ? 1_000 : 0);
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
      if (event.pointerType === "touch" && pinned >= 0 && index >= 0 && index !== pinned && graph.nodes[index].kind === "entity") hover(index);
      else pin(index);
    });
    picture.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY > 0 ? ZOOM_STEP : 1 / ZOOM_STEP);
    }, { passive: false });
  }

  function moveByKey(event) {
    const [x, y] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
    if (x || y) setBox(box[0] + x * MOVE_STEP * box[2], box[1] + y * MOVE_STEP * box[3], box[2], box[3]);
    else if (event.key === "+" || event.key === "-") zoomBy(event.key === "-" ? ZOOM_STEP : 1 / ZOOM_STEP);
    else return;
    event.preventDefault();
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

  /** Pin a node, open a cluster node, or unpin; with the `key` of another node than that of `index`, draw and pin it. */
  function pin(index, key = null) {
    const node = graph.nodes[index];
    if (key !== null && key !== node?.key) {
      open({ cluster: key, key });
      return;
    }
    if (node?.kind === "cluster") {
      if (node.hub === undefined) open({ cluster: node.members[0] });
      else if (node.members.length <= VALUES_MAX) open({ hub: node.hub });
      else go({ ...state, view: "facts", parameters: subjectOf(graph.nodes.find(({ key: of }) => of === node.hub)) });
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
      text = path ? pathText(graph, path) : `No path from ${graph.nodes[pinned].label} to ${graph.nodes[active].label}${graph.rest.length ? " among what is drawn" : ""}`;
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
    const half = Math.min(60, node.label.length) * 4;
    text.setAttribute("x", String(Math.min(size[0] - half, Math.max(half, positions.x[index]))));
    text.setAttribute("y", String(Math.max(14, positions.y[index] - radius(node) - 7)));
    labelOf.get(index)?.classList.add("covered");
  }

  function neighbourText(index) {
    const node = graph.nodes[index];
    if (node.kind === "cluster") return `${node.label}: click to open`;
    const near = graph.adjacency[index].map(({ node: other, edge }) => {
      const { kind, label, ended } = graph.edges[edge];
      return `${kind === "together" ? "" : `${label} `}${graph.nodes[other].label}${ended ? " (ended)" : ""}`;
    });
    const more = near.length > NEIGHBOURS_MAX ? ` and ${near.length - NEIGHBOURS_MAX} more` : "";
    const messages = node.mentions === 1 ? "1 message" : `${number(node.mentions)} messages`;
    const what = node.kind === "entity" ? `${node.type}${node.mentions ? `, in ${messages}` : ""}` : node.kind === "value" ? "stated value" : node.kind;
    return `${node.label} (${what})${near.length ? `: ${near.slice(0, NEIGHBOURS_MAX).join("; ")}${more}` : ""}`;
  }

  function showDetails() {
    const node = graph.nodes[pinned];
    details.hidden = !node || (node.kind !== "entity" && node.kind !== "document");
    if (details.hidden) return;
    const entries = graph.adjacency[pinned].map(({ node: other, edge }) => {
      const { kind, label, ended, a } = graph.edges[edge];
      const name = h("button", { type: "button", class: "link", onclick: () => {
        pin(other);
        details.focus({ preventScroll: true });
      } }, quoted(graph.nodes[other].label));
      const words = kind === "together" ? ["named together with ", name]
        : a === pinned ? [`${label} `, name] : [name, ` → ${label}`];
      return h("li", { class: ended ? "ended" : null }, words, ended ? " (ended)" : "");
    });
    if (node.kind === "document") {
      showDocument(node, entries);
      return;
    }
    replace(details, h("h3", {}, quoted(node.label)), h("ul", {}, entries),
      h("a", { href: address({ ...state, view: "facts", parameters: subjectOf(node) }) }, "Its facts"));
  }

  /** Show a document with its text, the decisions of a review and its removal. */
  async function showDocument(node, entries) {
    replace(details, h("p", { class: "hint" }, "Loading"));
    const { createEditor, memoryRow } = await import("./memory_row.js");
    if (graph.nodes[pinned] !== node) return;
    if (!editor) {
      editor = createEditor(state, async () => {
        answer = await reload();
        draw();
      });
      details.before(editor.written);
    }
    const row = memoryRow(editor, { id: node.id, kind: "document", line: [quoted(node.label)], said: "Text", review: node.review });
    replace(details, h("ol", { class: "rows" }, row), h("ul", {}, entries));
    row.querySelector(".said").click();
    details.scrollIntoView({ block: "nearest" });
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
