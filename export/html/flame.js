// SPDX-License-Identifier: GPL-2.0-or-later
// flame.js - the flame graph of a range and of some rows: wall-clock time, so that waits are in it as well.

const FLAME_ROW = 18;

function newNode(name, func) {
	return {name, func, total: 0, self: 0, kinds: new Float64Array(STACKED.length), children: new Map(), depth: 0};
}

function charge(node, ns, category) {
	node.total += ns;
	node.kinds[category] += ns;
}

function childOf(model, parent, func) {
	let child = parent.children.get(func);
	if (!child) {
		child = newNode(funcName(model, func), func);
		child.depth = parent.depth + 1;
		parent.children.set(func, child);
	}
	return child;
}

/** Adds the stacks of some series below a node. */
function addStacks(model, root, list, from, to, inverted, withIdle) {
	const functions = [];
	visitStacks(model, list, from, to, (stack, ns) => {
		const category = model.category[stack];
		if (!withIdle && isIdle(category))
			return;
		functions.length = 0;
		for (let node = model.stackNode[stack]; node !== NONE; node = model.nodeParent[node])
			functions.push(model.nodeFunc[node]);
		if (!inverted)
			functions.reverse();
		let at = root;
		charge(at, ns, category);
		for (const func of functions) {
			at = childOf(model, at, func);
			charge(at, ns, category);
		}
		at.self += ns;
	});
}

/** Returns the tree: of all rows merged, or with a node for each series below the root. */
function makeFlameTree(model, list, from, to, mode, withIdle) {
	const root = newNode('all', NONE);
	if (mode !== 'threads') {
		addStacks(model, root, list, from, to, mode === 'inverted', withIdle);
		return root;
	}
	list.forEach((series, i) => {
		const part = newNode(series.kind === 'thread' ? threadTitle(model, series.number) : series.name, NONE);
		part.depth = 1;
		addStacks(model, part, [series], from, to, false, withIdle);
		if (part.total <= 0)
			return;
		root.children.set(`series ${i}`, part);
		root.total += part.total;
		part.kinds.forEach((ns, kind) => {
			root.kinds[kind] += ns;
		});
	});
	return root;
}

/** Returns sums by function: self (innermost), and total once for each moment. */
function sumFunctions(model, list, from, to, withIdle) {
	const sums = new Map();
	visitStacks(model, list, from, to, (stack, ns) => {
		const category = model.category[stack], seen = new Set();
		if (!withIdle && isIdle(category))
			return;
		let innermost = true;
		for (let node = model.stackNode[stack]; node !== NONE; node = model.nodeParent[node]) {
			const func = model.nodeFunc[node];
			if (seen.has(func))
				continue;
			seen.add(func);
			if (!sums.has(func))
				sums.set(func, {func, self: 0, total: 0, kinds: new Float64Array(STACKED.length)});
			const sum = sums.get(func);
			sum.total += ns;
			sum.kinds[category] += ns;
			if (innermost)
				sum.self += ns;
			innermost = false;
		}
	});
	return [...sums.values()];
}

function makeFlame(state) {
	const canvas = byId('flame-canvas'), box = byId('flame'), context = canvas.getContext('2d');
	let root = null, top = null, boxes = [], focus = 0;

	/** Returns the boxes of the picture: {node, x, width, depth}; those that are too narrow are not in it. */
	function layOut(width) {
		const result = [];
		const place = (node, x, share, depth) => {
			if (share < 0.6)
				return;
			result.push({node, x, width: share, depth});
			const children = [...node.children.values()].sort((one, other) => other.total - one.total);
			let at = x;
			for (const child of children) {
				const part = share * child.total / node.total;
				place(child, at, part, depth + 1);
				at += part;
			}
		};
		if (top.total > 0)
			place(top, 0, width, 0);
		return result;
	}

	function drawBox(item, colours) {
		const {node, x, width, depth} = item, y = depth * FLAME_ROW;
		let at = x, largest = 0;
		for (const category of STACKED) {
			const part = width * node.kinds[category] / node.total;
			if (part <= 0)
				continue;
			context.fillStyle = colours.css[category];
			context.fillRect(at, y, part, FLAME_ROW - 1);
			at += part;
			largest = node.kinds[category] > node.kinds[largest] ? category : largest;
		}
		if (width > 3) {
			context.fillStyle = colours.back;
			context.fillRect(x + width - 1, y, 1, FLAME_ROW);
		}
		if (width < 28)
			return;
		const most = Math.floor((width - 6) / 6.6), name = printable(node.name);
		const text = name.length > most ? `${name.slice(0, Math.max(1, most - 1))}…` : name;
		const light = isLight(colours.css[STACKED.find((category) => node.kinds[category] > 0)]);
		context.fillStyle = light ? '#000' : '#fff';
		context.fillText(text, x + 4, y + FLAME_ROW / 2);
	}

	function draw() {
		const ratio = window.devicePixelRatio || 1, width = box.clientWidth;
		if (!root || width === 0)
			return;
		boxes = layOut(width);
		const deepest = boxes.reduce((most, item) => Math.max(most, item.depth), 0);
		const height = (deepest + 1) * FLAME_ROW + 2;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(height * ratio);
		canvas.style.height = `${height}px`;
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		context.font = '11.5px system-ui, sans-serif';
		context.textBaseline = 'middle';
		for (const item of boxes)
			drawBox(item, state.colours);
		if (document.activeElement === canvas && boxes[focus]) {
			context.strokeStyle = state.colours.text;
			context.lineWidth = 2;
			context.strokeRect(boxes[focus].x + 1, boxes[focus].depth * FLAME_ROW + 1, Math.max(2, boxes[focus].width - 2), FLAME_ROW - 3);
		}
	}

	function itemAt(event) {
		const area = canvas.getBoundingClientRect(), x = event.clientX - area.left;
		const depth = Math.floor((event.clientY - area.top) / FLAME_ROW);
		return boxes.find((item) => item.depth === depth && x >= item.x && x < item.x + item.width);
	}

	function describe(node) {
		const parts = [...node.kinds].map((ns, category) => [ns, category]).filter(([ns]) => ns > 0).sort((a, b) => b[0] - a[0]);
		const text = make('div', {}, make('b', {}, node.name), ' ');
		if (node.func !== NONE && funcLibrary(state.model, node.func))
			text.append(make('span', {className: 'dim'}, funcLibrary(state.model, node.func)));
		text.append(make('div', {}, `${duration(node.total)}, ${percent(node.total, root.total)}; itself ${duration(node.self)}`));
		for (const [ns, category] of parts.slice(0, 5))
			text.append(state.swatch(category, duration(ns)), ' ');
		return text;
	}

	function setTop(node) {
		top = node;
		focus = 0;
		draw();
		box.scrollTop = 0;
	}

	canvas.addEventListener('click', (event) => {
		const item = itemAt(event);
		if (item)
			setTop(item.node === top ? root : item.node);
	});
	canvas.addEventListener('mousemove', (event) => {
		const item = itemAt(event);
		if (item)
			state.showTipText(event, describe(item.node));
		else
			state.hideTip();
	});
	canvas.addEventListener('mouseleave', () => state.hideTip());
	canvas.addEventListener('focus', draw);
	canvas.addEventListener('blur', draw);
	canvas.addEventListener('keydown', (event) => {
		const item = boxes[focus];
		const near = (test) => boxes.findIndex((other) => test(other));
		let next = -1;
		if (event.key === 'ArrowDown')
			next = near((other) => other.depth === item.depth + 1 && other.x >= item.x - 0.01 && other.x < item.x + item.width);
		else if (event.key === 'ArrowUp')
			next = near((other) => other.depth === item.depth - 1 && other.x <= item.x + 0.01 && other.x + other.width > item.x);
		else if (event.key === 'ArrowRight')
			next = near((other) => other.depth === item.depth && other.x >= item.x + item.width - 0.01);
		else if (event.key === 'ArrowLeft')
			next = boxes.reduce((last, other, i) => other.depth === item.depth && other.x < item.x - 0.01 ? i : last, -1);
		else if (event.key === 'Enter' && item)
			setTop(item.node === top ? root : item.node);
		else if (event.key === 'Escape' && top !== root)
			setTop(root);
		else
			return;
		event.preventDefault();
		event.stopPropagation();
		if (next >= 0)
			focus = next;
		draw();
		const now = boxes[focus];
		canvas.setAttribute('aria-label', now ? `${printable(now.node.name)}: ${duration(now.node.total)}, ${percent(now.node.total, root.total)}` : '');
	});
	new ResizeObserver(draw).observe(box);

	return {
		draw,
		show(list, from, to, mode, withIdle) {
			root = makeFlameTree(state.model, list, from, to, mode, withIdle);
			setTop(root);
			return root;
		},
	};
}
