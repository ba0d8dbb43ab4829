// What the page shows: read from the element that holds it, and asked by op and value.

/** Return the bytes that an element holds compressed; null if it holds none. */
export async function unpacked(id) {
  const packed = document.getElementById(id)?.textContent.trim();
  if (!packed) return null;
  const text = atob(packed);
  const held = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) held[at] = text.charCodeAt(at);
  const stream = new Blob([held]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Return the contents of the page. */
export async function readContents() {
  return JSON.parse(new TextDecoder().decode(await unpacked("data")));
}

/** The ops of a program and the values that they pass to each other; both are numbers. */
export class Graph {
  constructor(columns, versions) {
    this.columns = columns;
    this.versions = versions;
    this.size = columns.kind.length;
    const size = this.size;
    this.blockOf = new Int32Array(size);
    this.firstOperand = new Uint32Array(size + 1);
    this.firstResult = new Uint32Array(size);
    const owners = [];
    columns.blocks.forEach(([start, number, , , first, types], block) => {
      for (let at = 0; at < types.length; at += 1) owners[first + at] = ~block;
      let value = first + types.length;
      for (let op = start; op < start + number; op += 1) {
        this.blockOf[op] = block;
        this.firstResult[op] = value;
        const results = columns.kinds[columns.kind[op]][4].length;
        for (let at = 0; at < results; at += 1) owners[value + at] = op;
        value += results;
      }
    });
    this.owner = Int32Array.from(owners);
    for (let op = 0; op < size; op += 1) {
      this.firstOperand[op + 1] = this.firstOperand[op] + columns.kinds[columns.kind[op]][3];
    }
    this.groups(columns);
  }

  /** Read the tree of groups: the members of each, and the group around each op and each group. */
  groups({ groups, members }) {
    this.firstMember = new Uint32Array(groups.length + 1);
    this.groupAround = new Int32Array(this.size).fill(-1);
    this.groupParent = new Int32Array(groups.length).fill(-1);
    this.groupOfOp = new Map();
    groups.forEach(([, , op, , number], group) => {
      this.firstMember[group + 1] = this.firstMember[group] + number;
      for (let at = this.firstMember[group]; at < this.firstMember[group + 1]; at += 1) {
        const member = members[at];
        if (member >= 0) this.groupAround[member] = group;
        else this.groupParent[~member] = group;
      }
      if (op >= 0) this.groupOfOp.set(op, group);
    });
    for (const [op, group] of this.groupOfOp) this.groupAround[op] = this.groupParent[group];
    // The newest introduction within each group; groups stand before those in them.
    this.groupNewest = new Int32Array(groups.length).fill(-1);
    for (let op = 0; op < this.size; op += 1) {
      const group = this.groupOfOp.get(op) ?? this.groupAround[op];
      if (group >= 0) this.groupNewest[group] = Math.max(this.groupNewest[group], this.introduced(op));
    }
    for (let group = groups.length - 1; group > 0; group -= 1) {
      const around = this.groupParent[group];
      this.groupNewest[around] = Math.max(this.groupNewest[around], this.groupNewest[group]);
    }
  }

  text(number) {
    return this.columns.strings[number];
  }

  kind(op) {
    return this.columns.kinds[this.columns.kind[op]];
  }

  name(op) {
    return this.text(this.kind(op)[0]);
  }

  artifactName(op) {
    return this.text(this.kind(op)[1]);
  }

  types(op) {
    return this.kind(op)[4].map((each) => this.text(each));
  }

  /** Return the attributes as pairs; null if the page has no room for them. */
  attributes(op) {
    const held = this.kind(op)[5];
    if (held === null) return null;
    const pairs = [];
    for (let at = 0; at < held.length; at += 2) pairs.push([this.text(held[at]), this.text(held[at + 1])]);
    return pairs;
  }

  features(op) {
    return this.columns.feature_sets[this.columns.features[op]];
  }

  introduced(op) {
    return this.columns.introduced[op];
  }

  label(op) {
    const number = this.columns.label[op];
    return number < 0 ? "" : this.text(number);
  }

  /** Return the calls that led to an op, its own line first: where, and in which function. */
  stack(op) {
    const found = [];
    for (let at = this.columns.stack[op]; at >= 0; at = this.columns.stacks[at][1]) {
      const [file, line, column, name] = this.columns.frames[this.columns.stacks[at][0]];
      found.push({ where: `${this.text(file)}:${line}${column ? `:${column}` : ""}`, name: this.text(name) });
    }
    return found;
  }

  parent(op) {
    return this.columns.blocks[this.blockOf[op]][2];
  }

  /** Return the group of the function that an op is in, or that it is; -1 at the top. */
  functionGroup(op) {
    for (let at = op; at >= 0; at = this.parent(at)) {
      const group = this.groupOfOp.get(at);
      if (group !== undefined && this.columns.groups[group][0] === "function") return group;
    }
    return -1;
  }

  /** Return the values that an op uses. */
  operands(op) {
    const own = this.firstResult[op];
    return this.columns.operands.slice(this.firstOperand[op], this.firstOperand[op + 1]).map((each) => own - each);
  }

  results(op) {
    return this.kind(op)[4].map((_, index) => this.firstResult[op] + index);
  }

  /** Return where a value comes from: an op and the number of the result, or a block and that of the argument. */
  source(value) {
    const owner = this.owner[value];
    if (owner >= 0) return { op: owner, index: value - this.firstResult[owner] };
    const block = this.columns.blocks[~owner];
    return { block: ~owner, op: block[2], index: value - block[4], type: this.text(block[5][value - block[4]]) };
  }

  /** Return the ops that use a value. */
  users(value) {
    if (!this.uses) {
      this.uses = new Map();
      for (let op = 0; op < this.size; op += 1) {
        for (const used of this.operands(op)) {
          const known = this.uses.get(used);
          if (known) known.push(op);
          else this.uses.set(used, [op]);
        }
      }
    }
    return [...new Set(this.uses.get(value) ?? [])];
  }

  group(number) {
    const [kind, label, op, size, members] = this.columns.groups[number];
    return { kind, label: this.text(label), op, size, members };
  }

  members(number) {
    return this.columns.members.slice(this.firstMember[number], this.firstMember[number + 1]);
  }

  version(number) {
    return number < 0 ? "unknown" : this.versions[number][0];
  }
}
