// Which groups are unfolded, and what is therefore to be seen: nodes, one within another, and merged edges.

/** The most nodes that are unfolded at once. */
export const MOST_NODES = 1500;
const FIRST_NODES = 48;
const FEW_NODES = 10;

/** The state of the tree of groups, of which the first is always open. */
export class Folding {
  constructor(graph) {
    this.graph = graph;
    this.open = new Set([0]);
    this.unfoldFirst();
  }

  /** Unfold the function that is entered, from the outside, as long as the picture stays small. */
  unfoldFirst() {
    const groups = this.graph.members(0).filter((each) => each < 0).map((each) => ~each);
    // Functions that others call are seen from their calls: what is named main is what one looks for.
    this.first = groups.find((each) => this.graph.group(each).label === "@main") ?? groups[0] ?? 0;
    // A single box says nothing: it is unfolded, however much is in it.
    this.open.add(this.first);
    const queue = this.graph.members(this.first).filter((each) => each < 0);
    let seen = this.count();
    while (queue.length) {
      const group = ~queue.shift();
      const members = this.graph.members(group);
      if (seen + members.length > FIRST_NODES) continue;
      seen += members.length;
      this.open.add(group);
      queue.push(...members.filter((each) => each < 0));
    }
    // A line of very many ops, alone in its function, says as little as a single box.
    for (let depth = 0; depth < 4 && this.count() < FEW_NODES; depth += 1) {
      const folded = [...this.open].flatMap((group) => this.graph.members(group)).filter((each) => each < 0 && !this.open.has(~each));
      const largest = folded.map((each) => ~each).sort((a, b) => this.graph.group(b).size - this.graph.group(a).size)[0];
      if (largest === undefined) return;
      this.open.add(largest);
    }
  }

  isOpen(group) {
    return this.open.has(group);
  }

  toggle(group) {
    if (group === 0) return;
    if (this.open.has(group)) this.open.delete(group);
    else this.open.add(group);
  }

  /** Unfold all that is around an op; return whether anything was folded. */
  reveal(op) {
    let changed = false;
    for (let group = this.graph.groupAround[op]; group >= 0; group = this.graph.groupParent[group]) {
      changed ||= !this.open.has(group);
      this.open.add(group);
    }
    return changed;
  }

  /** Unfold everything within a group, as far as there is room; return whether all of it is. */
  unfoldAll(group = 0) {
    const queue = [group];
    let seen = this.count();
    let whole = true;
    while (queue.length) {
      const each = queue.shift();
      const members = this.graph.members(each);
      if (!this.open.has(each)) {
        if (seen + members.length > MOST_NODES) {
          whole = false;
          continue;
        }
        seen += members.length;
        this.open.add(each);
      }
      queue.push(...members.filter((member) => member < 0).map((member) => ~member));
    }
    return whole;
  }

  foldAll() {
    this.open = new Set([0]);
  }

  /** Return the number of nodes to be seen. */
  count() {
    let number = 0;
    const pending = [0];
    while (pending.length) {
      for (const member of this.graph.members(pending.pop())) {
        number += 1;
        if (member < 0 && this.open.has(~member)) pending.push(~member);
      }
    }
    return number;
  }

  /** Return the nodes to be seen, outermost first, and the edges between them. */
  visible() {
    const { graph } = this;
    const nodes = [];
    // The node that shows each op; of one that is folded, the node that folds it.
    const shown = new Int32Array(graph.size).fill(-1);
    const inputs = new Map();
    const add = (node) => nodes.push({ children: [], ...node, number: nodes.length }) - 1;
    const fold = (group, node) => {
      const pending = [group];
      while (pending.length) {
        const each = pending.pop();
        const { op } = graph.group(each);
        if (op >= 0) shown[op] = node;
        for (const member of graph.members(each)) {
          if (member < 0) pending.push(~member);
          else shown[member] = node;
        }
      }
    };
    const walk = (group, parent) => {
      for (const member of graph.members(group)) {
        const within = member < 0 ? ~member : -1;
        const op = within < 0 ? member : graph.group(within).op;
        const isOpen = within >= 0 && this.open.has(within);
        const id = within < 0 ? `o${member}` : `g${within}`;
        const node = add({ id, group: within, op, parent, open: isOpen });
        if (parent >= 0) nodes[parent].children.push(node);
        if (op >= 0) shown[op] = node;
        if (isOpen) walk(within, node);
        else if (within >= 0) fold(within, node);
      }
    };
    walk(0, -1);
    graph.columns.blocks.forEach(([, , op, , , types], block) => {
      const holder = op >= 0 ? shown[op] : -1;
      if (!types.length || holder < 0 || !nodes[holder].open || nodes[holder].op !== op) return;
      const node = add({ id: `a${block}`, group: -1, op: -1, block, parent: holder, open: false });
      nodes[holder].children.unshift(node);
      inputs.set(block, node);
    });
    const counts = new Map();
    const { owner, firstOperand, firstResult } = graph;
    const { operands } = graph.columns;
    for (let op = 0; op < graph.size; op += 1) {
      const target = shown[op];
      if (target < 0) continue;
      for (let at = firstOperand[op]; at < firstOperand[op + 1]; at += 1) {
        const from = owner[firstResult[op] - operands[at]];
        const source = from >= 0 ? shown[from] : (inputs.get(~from) ?? -1);
        if (source < 0 || source === target) continue;
        const key = source * nodes.length + target;
        counts.set(key, (counts.get(key) ?? 0) + 1);
      }
    }
    const edges = [...counts].map(([key, count]) => ({
      source: Math.floor(key / nodes.length),
      target: key % nodes.length,
      count,
    }));
    // What nothing uses needs no node.
    const used = new Set(edges.map((edge) => edge.source));
    for (const node of nodes) node.hidden = node.block !== undefined && !used.has(node.number);
    return { nodes, edges, shown };
  }
}

/** Return edges between nodes of one level alone: those that cross borders end at the nodes around that have one parent. */
export function lifted({ nodes, edges }) {
  const depth = nodes.map(() => 0);
  for (const node of nodes) if (node.parent >= 0) depth[node.number] = depth[node.parent] + 1;
  const counts = new Map();
  for (let { source, target, count } of edges) {
    while (depth[source] > depth[target]) source = nodes[source].parent;
    while (depth[target] > depth[source]) target = nodes[target].parent;
    while (nodes[source].parent !== nodes[target].parent) {
      source = nodes[source].parent;
      target = nodes[target].parent;
    }
    if (source === target) continue;
    const key = source * nodes.length + target;
    counts.set(key, (counts.get(key) ?? 0) + count);
  }
  return [...counts].map(([key, count]) => ({
    source: Math.floor(key / nodes.length),
    target: key % nodes.length,
    count,
  }));
}
