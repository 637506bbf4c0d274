/** Layout: positions of nodes by forces, without random numbers: the same graph gets the same picture. */

/** Angle between neighbours on a spiral, which spreads any number of points evenly. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** Pull to the middle; what no edge ties to the largest part is pulled more, since nothing else keeps it near. */
const [PULL, LOOSE_PULL] = [0.2, 0.7];
/** Labels that have a place in any case, on other nodes if need be: those of the most important entities. */
const LABELS_MIN = 12;
/** Margin around the picture in pixels: half a label above and below. */
const MARGIN = 34;

/**
 * Return the positions of the nodes of a graph in a picture of `width` x `height` pixels.
 * @param {import("./graph.js").Graph} graph
 * @param {(node: any) => number} radiusOf
 * @returns {{x: Float64Array, y: Float64Array}}
 */
export function layOut({ nodes, edges }, width, height, radiusOf) {
  const count = nodes.length;
  const { x, y } = spiral(nodes);
  // 300 steps are enough to settle; large graphs get fewer, so that the time stays about a second.
  const steps = count <= 400 ? 300 : Math.max(60, Math.round(120_000 / count));
  const aspect = width / height;
  const loose = looseNodes(count, edges);
  const [forceX, forceY] = [new Float64Array(count), new Float64Array(count)];
  for (let step = 0; step < steps; step += 1) {
    forceX.fill(0);
    forceY.fill(0);
    repel(x, y, forceX, forceY);
    attract(nodes, edges, x, y, forceX, forceY);
    gather(nodes, x, y, forceX, forceY, aspect, loose);
    const reach = Math.max(0.02, 0.12 * Math.sqrt(count) * (1 - step / steps) ** 1.5);
    for (let at = 0; at < count; at += 1) {
      const length = Math.hypot(forceX[at], forceY[at]) || 1;
      const scale = Math.min(length, reach) / length;
      x[at] += forceX[at] * scale;
      y[at] += forceY[at] * scale;
    }
  }
  fit(x, y, width, height);
  const radii = Float64Array.from(nodes, radiusOf);
  separate(x, y, radii, width, height, count > 600 ? 4 : 30);
  return { x, y };
}

/** Return which nodes are outside the largest connected part of the graph. */
function looseNodes(count, edges) {
  const parent = Array.from({ length: count }, (_, at) => at);
  const root = (at) => {
    while (parent[at] !== at) at = parent[at] = parent[parent[at]];
    return at;
  };
  for (const { a, b } of edges) parent[root(a)] = root(b);
  const sizes = new Map();
  for (let at = 0; at < count; at += 1) sizes.set(root(at), (sizes.get(root(at)) ?? 0) + 1);
  const largest = [...sizes].reduce((best, entry) => (entry[1] > best[1] ? entry : best), [-1, 0])[0];
  return parent.map((_, at) => root(at) !== largest);
}

/** Return first positions: clusters on a spiral, their nodes on a spiral around them. */
function spiral(nodes) {
  const [x, y] = [new Float64Array(nodes.length), new Float64Array(nodes.length)];
  const sizes = new Map();
  nodes.forEach((node) => sizes.set(node.cluster, (sizes.get(node.cluster) ?? 0) + 1));
  const order = [...sizes.keys()].sort((a, b) => sizes.get(b) - sizes.get(a) || a - b);
  const rank = new Map(order.map((cluster, at) => [cluster, at]));
  const placed = new Map();
  const spread = Math.sqrt(nodes.length / Math.max(1, sizes.size));
  nodes.forEach((node, at) => {
    const [cluster, number] = [rank.get(node.cluster), placed.get(node.cluster) ?? 0];
    placed.set(node.cluster, number + 1);
    const [far, near] = [1.6 * spread * Math.sqrt(cluster), 0.7 * Math.sqrt(number + 0.5)];
    x[at] = far * Math.cos(cluster * GOLDEN_ANGLE) + near * Math.cos(number * GOLDEN_ANGLE);
    y[at] = far * Math.sin(cluster * GOLDEN_ANGLE) + near * Math.sin(number * GOLDEN_ANGLE);
  });
  return { x, y };
}

/** Push all nodes apart, by the inverse of their distance. */
function repel(x, y, forceX, forceY) {
  for (let a = 0; a < x.length; a += 1) {
    const [ax, ay] = [x[a], y[a]];
    let [sumX, sumY] = [0, 0];
    for (let b = a + 1; b < x.length; b += 1) {
      const dx = ax - x[b];
      const dy = ay - y[b];
      const square = dx * dx + dy * dy + 0.01;
      // Beyond five lengths of an edge the push would only make room that nothing fills.
      if (square > 25) continue;
      const [pushX, pushY] = [dx / square, dy / square];
      sumX += pushX;
      sumY += pushY;
      forceX[b] -= pushX;
      forceY[b] -= pushY;
    }
    forceX[a] += sumX;
    forceY[a] += sumY;
  }
}

/** Pull the ends of edges together. */
function attract(nodes, edges, x, y, forceX, forceY) {
  for (const { a, b, kind } of edges) {
    const [dx, dy] = [x[a] - x[b], y[a] - y[b]];
    const near = nodes[a].cluster === nodes[b].cluster ? 1 : 0.35;
    const pull = Math.hypot(dx, dy) * near * (kind === "together" ? 0.5 : 1);
    // The many edges of a hub must not pull all of its neighbours into one point.
    const share = 1 / Math.sqrt(Math.max(1, Math.min(nodes[a].degree, nodes[b].degree)));
    forceX[a] -= dx * pull * share;
    forceY[a] -= dy * pull * share;
    forceX[b] += dx * pull * share;
    forceY[b] += dy * pull * share;
  }
}

/** Pull nodes to the middle of their cluster, and everything to the middle of the picture, in its proportions. */
function gather(nodes, x, y, forceX, forceY, aspect, loose) {
  const sums = new Map();
  nodes.forEach((node, at) => {
    const sum = sums.get(node.cluster) ?? [0, 0, 0];
    sum[0] += x[at];
    sum[1] += y[at];
    sum[2] += 1;
    sums.set(node.cluster, sum);
  });
  nodes.forEach((node, at) => {
    const [sumX, sumY, size] = sums.get(node.cluster);
    if (size > 1 && node.cluster >= 0) {
      forceX[at] -= 0.25 * (x[at] - sumX / size);
      forceY[at] -= 0.25 * (y[at] - sumY / size);
    }
    const pull = loose[at] ? LOOSE_PULL : PULL;
    forceX[at] -= (pull / aspect) * x[at];
    forceY[at] -= pull * aspect * y[at];
  });
}

/** Scale positions to the picture; one side is stretched by at most a half to fill it. */
function fit(x, y, width, height) {
  if (!x.length) return;
  const [left, right, top, bottom] = [Math.min(...x), Math.max(...x), Math.min(...y), Math.max(...y)];
  const [scaleX, scaleY] = [(width - 2 * MARGIN) / (right - left || 1), (height - 2 * MARGIN) / (bottom - top || 1)];
  const scale = Math.min(scaleX, scaleY, 160);
  const [stretchX, stretchY] = [Math.min(scaleX, scale * 1.5, 160), Math.min(scaleY, scale * 1.5, 160)];
  for (let at = 0; at < x.length; at += 1) {
    x[at] = width / 2 + (x[at] - (left + right) / 2) * stretchX;
    y[at] = height / 2 + (y[at] - (top + bottom) / 2) * stretchY;
  }
}

/** Move nodes that overlap apart, within the picture. */
function separate(x, y, radii, width, height, passes) {
  for (let pass = 0; pass < passes; pass += 1) {
    for (let a = 0; a < x.length; a += 1) {
      for (let b = a + 1; b < x.length; b += 1) {
        const wanted = radii[a] + radii[b] + 10;
        const dx = x[a] - x[b];
        if (dx > wanted || dx < -wanted) continue;
        const dy = y[a] - y[b];
        const distance = Math.hypot(dx, dy) || 0.01;
        if (distance >= wanted) continue;
        const move = (wanted - distance) / 2 / distance;
        x[a] += (dx || 0.01) * move;
        y[a] += dy * move;
        x[b] -= (dx || 0.01) * move;
        y[b] -= dy * move;
      }
    }
    for (let at = 0; at < x.length; at += 1) {
      x[at] = Math.min(width - MARGIN, Math.max(MARGIN, x[at]));
      y[at] = Math.min(height - MARGIN, Math.max(MARGIN, y[at]));
    }
  }
}

/**
 * Return the outline around points as corners: their convex hull, wider by `padding`.
 * @param {[number, number][]} points
 * @returns {[number, number][]}
 */
export function hull(points, padding) {
  const around = points.flatMap(([x, y]) => Array.from({ length: 8 }, (_, step) => /** @type {[number, number]} */ (
    [x + padding * Math.cos((step * Math.PI) / 4), y + padding * Math.sin((step * Math.PI) / 4)])));
  around.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const half = (sorted) => {
    const line = [];
    for (const point of sorted) {
      while (line.length > 1 && turn(line.at(-2), line.at(-1), point) <= 0) line.pop();
      line.push(point);
    }
    line.pop();
    return line;
  };
  return [...half(around), ...half(around.reverse())];
}

function turn(a, b, c) {
  return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/**
 * Return the boxes of the labels that have room, by node: the most important nodes choose first.
 * @param {number[]} order  nodes by importance
 * @param {(at: number) => {x: number, y: number, radius: number, text: string}} nodeAt
 * @returns {Map<number, {x: number, y: number, anchor: string}>}
 */
export function placeLabels(order, nodeAt, width, height, labelsMax) {
  const nodeBoxes = order.map((at) => {
    const { x, y, radius } = nodeAt(at);
    return [x - radius, y - radius, x + radius, y + radius];
  });
  const labelBoxes = [];
  const overlaps = (box, boxes) => boxes.some((other) => (
    box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3]));
  const labels = new Map();
  for (const [rank, at] of order.entries()) {
    if (labels.size >= labelsMax) break;
    const { x, y, radius, text } = nodeAt(at);
    const wide = text.length * 6.8 + 4;
    const places = [
      { x: x + radius + 4, y: y + 4, anchor: "start", left: x + radius + 2 },
      { x, y: y + radius + 14, anchor: "middle", left: x - wide / 2 },
      { x, y: y - radius - 6, anchor: "middle", left: x - wide / 2 },
      { x: x - radius - 4, y: y + 4, anchor: "end", left: x - radius - 2 - wide },
    ];
    const boxOf = (place) => [place.left, place.y - 12, place.left + wide, place.y + 4];
    const inside = places.filter((place) => {
      const [left, top, right, bottom] = boxOf(place);
      return left > 2 && right < width - 2 && top > 2 && bottom < height - 2 && !overlaps(boxOf(place), labelBoxes);
    });
    const free = inside.find((place) => !overlaps(boxOf(place), nodeBoxes)) ?? (rank < LABELS_MIN ? inside[0] : undefined);
    if (free) labelBoxes.push(boxOf(free));
    if (free) labels.set(at, free);
  }
  return labels;
}
