/** Graph: the nodes and edges of the map, their clusters, and the paths between them. */

/** Nodes that an opened cluster draws at most. Layout and drawing take about a second then. */
const NODES_MAX = 1_500;
/** Pixels of the picture for each node of the overview: with less, nodes hide one another and few have a name. */
const PIXELS_OF_NODE = 50 * 50;
/** Nodes of the overview of the smallest picture, without those that stand for others. */
const NODES_MIN = 30;
/** Clusters with an outline, the largest ones; more are a patchwork. */
const CLUSTERS_MAX = 12;
/** Entities without a connection that are drawn; more are one node. */
const ALONE_MAX = 12;
/** Documents that are drawn, the newest ones; more are one node. */
const DOCUMENTS_MAX = 30;
/** The clusters of what has no place of its own: without a connection, of a small cluster, of the older documents. */
const [ALONE, SMALL, OLDER] = [-1, -2, -3];
/** Stated values that are drawn for each entity; more are one node, since they hide the entity and few have a name. */
const VALUES_OF_NODE_MAX = 12;
/** Pairs with common messages that are kept for each entity: more make a hairball. */
const PAIRS_OF_NODE_MAX = 3;
/** How strongly an edge pulls its ends into one cluster. */
const STRENGTH = { relationship: 3, fact: 2, document: 2, together: 1 };
/** Steps of a path by what is stated that are shorter than one by a common message, which says little. */
const TOGETHER_STEPS = 4;
/** Sweeps over all nodes in which they choose a cluster; few graphs change after the sixth. */
const SWEEPS_MAX = 10;

/**
 * @typedef {object} MapNode
 * @property {string} key
 * @property {string} label
 * @property {"entity" | "document" | "value" | "cluster"} kind
 * @property {string} type
 * @property {number} mentions
 * @property {number} degree
 * @property {number} cluster  below 0: of no outline
 * @property {string[]} [members]  of a cluster node
 * @property {string} [hub]  of a cluster node of stated values: the key of their entity
 *
 * @typedef {object} MapEdge
 * @property {number} a  index of a node
 * @property {number} b
 * @property {"relationship" | "fact" | "document" | "together"} kind
 * @property {string} label
 * @property {boolean} ended
 *
 * @typedef {object} Graph
 * @property {MapNode[]} nodes
 * @property {MapEdge[]} edges
 * @property {{node: number, edge: number}[][]} adjacency
 * @property {(MapNode & {place: number})[]} rest  the other nodes, with the place of the node that stands for them, or -1
 */

/**
 * Return the graph of an answer of `/map`. Nodes and edges are in the order of the answer, so that the same answer
 * gives the same picture.
 * @param {any} answer
 * @param {{facts: boolean, documents: boolean, together: boolean, ended: boolean, cluster: string | null, hub?: string | null, pixels: number}} options
 *   cluster: the key of a node whose cluster is drawn alone; hub: of an entity that is drawn with its stated values;
 *   pixels: the area of the picture
 * @returns {Graph}
 */
export function buildGraph(answer, options) {
  const whole = connected(answer, options);
  assignClusters(whole);
  setApart(whole);
  return collapsed(whole, options);
}

function connected(answer, { facts, documents, together, ended }) {
  const nodes = answer.entities.map((entity) => ({
    key: `e${entity.id}`, label: entity.name, kind: "entity", type: entity.type, mentions: entity.mention_count,
    spoken: entity.spoken_count, degree: 0, cluster: 0,
  }));
  const index = new Map(answer.entities.map((entity, at) => [entity.id, at]));
  const edges = documents ? addDocuments(nodes, answer.documents, index) : [];
  for (const edge of answer.edges) {
    if (edge.kind === "together" || (edge.kind === "fact" && !facts)) continue;
    const isEnded = edge.status !== "active" && edge.status !== "stale";
    if (isEnded && !ended) continue;
    let target = edge.target === null ? undefined : index.get(edge.target);
    if (edge.target === null) {
      target = nodes.length;
      nodes.push({ key: `f${edge.id}`, label: edge.text, kind: "value", type: "value", mentions: 0, degree: 0, cluster: 0 });
    }
    edges.push({ a: index.get(edge.source), b: target, kind: edge.kind, label: edge.type, ended: isEnded, id: edge.id });
  }
  if (together) edges.push(...commonMessages(answer.edges, index, edges));
  return { nodes, edges };
}

/** Add the documents to the nodes; return what connects them. */
function addDocuments(nodes, documents, index) {
  const places = new Map(documents.map(({ id }, at) => [id, nodes.length + at]));
  documents.forEach(({ id, title, review }) => nodes.push({
    key: `d${id}`, label: title, kind: "document", type: "document", mentions: 0, degree: 0, cluster: 0, id, review,
  }));
  return documents.flatMap(({ id, links }) => links.map(({ type, entity, document }) => ({
    a: places.get(id), b: entity === null ? places.get(document) : index.get(entity), kind: "document", label: type, ended: false,
  })));
}

/** Return the pairs with common messages: the most frequent ones of each entity that no other edge connects. */
function commonMessages(edges, index, stated) {
  const pairs = new Set(stated.filter((edge) => !edge.ended).map(({ a, b }) => `${Math.min(a, b)} ${Math.max(a, b)}`));
  const counts = new Map();
  const kept = [];
  for (const edge of edges) {
    if (edge.kind !== "together") continue;
    const [a, b] = [index.get(edge.source), index.get(edge.target)];
    const most = Math.min(counts.get(a) ?? 0, counts.get(b) ?? 0);
    if (most >= PAIRS_OF_NODE_MAX || pairs.has(`${Math.min(a, b)} ${Math.max(a, b)}`)) continue;
    counts.set(a, (counts.get(a) ?? 0) + 1);
    counts.set(b, (counts.get(b) ?? 0) + 1);
    const messages = edge.count === 1 ? "in 1 message" : `in ${edge.count} messages`;
    kept.push({ a, b, kind: "together", label: messages, ended: false, count: edge.count });
  }
  return kept;
}

/** Return for each node its edges, the stated ones first, so that paths prefer them. */
function adjacencyOf(nodes, edges) {
  const adjacency = nodes.map(() => []);
  const order = edges.map((_, at) => at).sort((x, y) => STRENGTH[edges[y].kind] - STRENGTH[edges[x].kind] || x - y);
  for (const at of order) {
    const { a, b } = edges[at];
    adjacency[a].push({ node: b, edge: at });
    if (a !== b) adjacency[b].push({ node: a, edge: at });
  }
  return adjacency;
}

/**
 * Give each node a cluster: nodes move to the neighbouring cluster that raises the modularity most (the first phase of
 * the Louvain method), in the order of the nodes, until none moves.
 */
function assignClusters({ nodes, edges }) {
  const weights = nodes.map(() => new Map());
  let total = 0;
  for (const { a, b, kind, ended } of edges) {
    if (a === b) continue;
    const weight = STRENGTH[kind] * (ended ? 0.5 : 1);
    weights[a].set(b, (weights[a].get(b) ?? 0) + weight);
    weights[b].set(a, (weights[b].get(a) ?? 0) + weight);
    total += weight;
  }
  const strength = weights.map((near) => [...near.values()].reduce((sum, weight) => sum + weight, 0));
  const cluster = nodes.map((_, at) => at);
  const sums = [...strength];
  for (let sweep = 0, moved = true; moved && sweep < SWEEPS_MAX; sweep += 1) {
    moved = false;
    for (let at = 0; at < nodes.length; at += 1) {
      const gains = new Map();
      for (const [other, weight] of weights[at]) {
        gains.set(cluster[other], (gains.get(cluster[other]) ?? 0) + weight);
      }
      const own = cluster[at];
      sums[own] -= strength[at];
      let best = own;
      let most = (gains.get(own) ?? 0) - (sums[own] * strength[at]) / (2 * total);
      for (const [candidate, weight] of gains) {
        const gain = weight - (sums[candidate] * strength[at]) / (2 * total);
        if (gain > most + 1e-9) [best, most] = [candidate, gain];
      }
      sums[best] += strength[at];
      if (best !== own) [cluster[at], moved] = [best, true];
    }
  }
  const numbers = new Map();
  nodes.forEach((node, at) => {
    if (!numbers.has(cluster[at])) numbers.set(cluster[at], numbers.size);
    node.cluster = numbers.get(cluster[at]);
  });
}

/** Take nodes out of their clusters that would crowd the picture: they are drawn as one node each, which opens. */
function setApart({ nodes, edges }) {
  const isConnected = new Set(edges.flatMap(({ a, b }) => (a === b ? [] : [a, b])));
  const alone = nodes.filter((node, at) => !isConnected.has(at) && node.kind === "entity");
  if (alone.length > ALONE_MAX) alone.forEach((node) => { node.cluster = ALONE; });
  nodes.filter(({ kind }) => kind === "document").slice(DOCUMENTS_MAX).forEach((node) => { node.cluster = OLDER; });
  const sizes = new Map();
  for (const { cluster } of nodes) if (cluster >= 0) sizes.set(cluster, (sizes.get(cluster) ?? 0) + 1);
  const small = new Set([...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b).slice(CLUSTERS_MAX));
  nodes.forEach((node) => { if (small.has(node.cluster)) node.cluster = SMALL; });
}

/** Return the stated values of each entity that has too many to draw. */
function foldedValues(nodes, edges) {
  const values = new Map();
  for (const { a, b } of edges) {
    if (nodes[b].kind !== "value") continue;
    const of = values.get(a) ?? [];
    of.push(b);
    values.set(a, of);
  }
  return new Map([...values].filter(([, of]) => of.length > VALUES_OF_NODE_MAX));
}

/** Return the name of a node that stands for several. */
function clusterLabel(cluster, first, count) {
  if (cluster === ALONE) return `${count} without a connection`;
  return cluster === OLDER ? `${count} older documents` : `${count} more, such as ${first.label}`;
}

/** Return the graph of one cluster or hub, or of as many nodes as have room, with the rest as cluster nodes. */
function collapsed({ nodes, edges }, { cluster: openKey, hub: openHub = null, pixels }) {
  const open = nodes.find(({ key }) => key === openKey);
  const hubAt = nodes.findIndex(({ key }) => key === openHub);
  const folded = hubAt < 0 ? foldedValues(nodes, edges) : new Map();
  const isFolded = new Set([...folded.values()].flat());
  const ofHub = new Set([hubAt, ...edges.filter(({ a, b }) => a === hubAt && nodes[b].kind === "value").map(({ b }) => b)]);
  const eligible = nodes.map((_, at) => at)
    .filter((at) => (hubAt < 0 ? !isFolded.has(at) && (!open || nodes[at].cluster === open.cluster) : ofHub.has(at)));
  const isOverview = !open && hubAt < 0;
  const room = Math.floor(pixels / PIXELS_OF_NODE) - folded.size - CLUSTERS_MAX;
  const nodesMax = isOverview ? Math.max(NODES_MIN, Math.min(NODES_MAX, room)) : NODES_MAX;
  const kept = [];
  const place = new Map();
  const isDrawn = (at) => !isOverview || (nodes[at].cluster !== ALONE && nodes[at].cluster !== OLDER);
  for (const at of eligible.filter(isDrawn).slice(0, nodesMax)) {
    place.set(at, kept.length);
    kept.push({ ...nodes[at] });
  }
  const groups = new Map();
  for (const at of eligible.filter((at) => !place.has(at))) {
    const members = groups.get(nodes[at].cluster) ?? [];
    members.push(at);
    groups.set(nodes[at].cluster, members);
  }
  for (const [cluster, members] of groups) {
    const first = nodes[members[0]];
    members.forEach((at) => place.set(at, kept.length));
    kept.push({
      key: `c${first.key}`, label: clusterLabel(cluster, first, members.length), kind: "cluster", type: "cluster",
      mentions: 0, degree: 0, cluster, members: members.map((at) => nodes[at].key),
    });
  }
  const rest = nodes.map((node, at) => ({ ...node, place: place.get(at) ?? -1 })).filter(({ place: of, key }) => kept[of]?.key !== key);
  for (const [hub, values] of folded) {
    const entity = kept[place.get(hub)];
    if (entity === undefined || entity.kind === "cluster") continue;
    values.forEach((at) => place.set(at, kept.length));
    kept.push({
      key: `v${entity.key}`, label: `${values.length} facts of ${entity.label}`, kind: "cluster", type: "values",
      mentions: 0, degree: 0, cluster: entity.cluster, members: values.map((at) => nodes[at].key), hub: entity.key,
    });
  }
  const drawn = new Set();
  const keptEdges = [];
  for (const edge of edges) {
    const [a, b] = [place.get(edge.a), place.get(edge.b)];
    if (a === undefined || b === undefined || a === b) continue;
    const isCollapsed = kept[a].kind === "cluster" || kept[b].kind === "cluster";
    const key = `${Math.min(a, b)} ${Math.max(a, b)}`;
    if (isCollapsed && drawn.has(key)) continue;
    drawn.add(key);
    keptEdges.push(kept[b].hub === undefined ? { ...edge, a, b } : { ...edge, a, b, label: "has", ended: false });
    kept[a].degree += 1;
    kept[b].degree += 1;
  }
  return { nodes: kept, edges: keptEdges, adjacency: adjacencyOf(kept, keptEdges), rest };
}

/**
 * Return the shortest path between two nodes as edges with their direction, over edges that are valid, or over all
 * when these do not connect them; null when nothing does. A common message counts as `TOGETHER_STEPS` stated steps.
 * @param {Graph} graph
 * @returns {{edge: number, from: number, to: number}[] | null}
 */
export function shortestPath(graph, start, end) {
  return search(graph, start, end, false) ?? search(graph, start, end, true);
}

/** Search by Dijkstra's method, with a list of the nodes at each distance. */
function search({ adjacency, edges, nodes }, start, end, withEnded) {
  const from = new Array(nodes.length).fill(null);
  const distances = new Array(nodes.length).fill(Infinity);
  distances[start] = 0;
  const queues = [[start]];
  for (let distance = 0; distance < queues.length && distances[end] > distance; distance += 1) {
    for (const at of queues[distance] ?? []) {
      // What one node stands for need not be connected with one another.
      if (distances[at] < distance || (nodes[at].kind === "cluster" && at !== start)) continue;
      for (const { node, edge } of adjacency[at]) {
        const reached = distance + (edges[edge].kind === "together" ? TOGETHER_STEPS : 1);
        if (reached >= distances[node] || (edges[edge].ended && !withEnded)) continue;
        distances[node] = reached;
        from[node] = { edge, from: at, to: node };
        (queues[reached] ??= []).push(node);
      }
    }
  }
  if (distances[end] === Infinity) return null;
  const path = [];
  for (let node = end; node !== start; node = from[node].from) path.unshift(from[node]);
  return path;
}

/** Return a path as a sentence. */
export function pathText({ nodes, edges }, path) {
  const words = [nodes[path[0].from].label];
  for (const step of path) {
    const edge = edges[step.edge];
    const arrow = edge.kind === "together" ? `– named together ${edge.label} –`
      : edge.a === step.from ? `→ ${edge.label} →` : `← ${edge.label} ←`;
    words.push(arrow + (edge.ended ? " (ended)" : ""), nodes[step.to].label);
  }
  return words.join(" ");
}
