// SPDX-License-Identifier: GPL-2.0-or-later
// model.js - tracks, their segments, and sums over a range of time. Times are ns since the start of the window.

const IDLE = 1, JOBS = 13;
const NONE = 0xffffffff;

/** Makes the segments of one track from their columns: first of all segments, then the count. */
function makeSeries(model, number, kind, name, start, end, count) {
	const {segmentStart, segmentWeight, segmentStack} = model.columns;
	const first = model.segments;
	let at = start;
	for (let i = first; i < first + count; i++) {
		at += segmentStart[i];
		model.start[i] = at;
		model.stack[i] = segmentStack[i];
	}
	for (let i = first; i < first + count; i++) {
		const next = i + 1 < first + count ? model.start[i + 1] : end;
		model.weight[i] = signed(segmentWeight[i]) + Math.max(0, next - model.start[i]);
	}
	model.segments += count;
	return {number, kind, name, start, end, first, last: first + count};
}

/** The tree of functions, in which stacks that differ by lines alone are one node. */
function makeNodes(model) {
	const index = new Map();
	const {stackPrefix, stackFrame} = model.columns;
	model.nodeParent = [];
	model.nodeFunc = [];
	model.stackNode = new Uint32Array(stackPrefix.length);
	for (let i = 0; i < stackPrefix.length; i++) {
		const parent = stackPrefix[i] ? model.stackNode[stackPrefix[i] - 1] : NONE;
		const func = model.columns.frameFunc[stackFrame[i]];
		const key = (parent === NONE ? 0 : parent + 1) * 0x1000000 + func;
		let node = index.get(key);
		if (node === undefined) {
			node = model.nodeParent.length;
			index.set(key, node);
			model.nodeParent.push(parent);
			model.nodeFunc.push(func);
		}
		model.stackNode[i] = node;
	}
}

function makeStretches(model) {
	const {pathStart, pathLength, pathOwner, pathName} = model.columns;
	let at = model.path ? model.path.start : 0;
	model.stretches = [];
	for (let i = 0; i < pathStart.length; i++) {
		const start = at + pathStart[i];
		at = start + pathLength[i];
		model.stretches.push({start, end: at, thread: pathOwner[i], name: model.strings[pathName[i]]});
	}
}

function makeWaits(model) {
	const columns = model.columns;
	const text = (number) => number ? model.strings[number - 1] : '';
	model.waitList = Array.from(columns.waitThread, (thread, i) => ({
		thread,
		start: model.threads[thread].start + columns.waitStart[i],
		ns: columns.waitLength[i],
		object: text(columns.waitObject[i]),
		waker: text(columns.waitWaker[i]),
		wakerThread: columns.waitWakerThread[i] ? columns.waitWakerThread[i] - 1 : NONE,
		holder: text(columns.waitHolder[i]),
		chain: text(columns.waitChain[i]),
	}));
	model.waitsOf = new Map();
	for (const wait of model.waitList) {
		if (!model.waitsOf.has(wait.thread))
			model.waitsOf.set(wait.thread, []);
		model.waitsOf.get(wait.thread).push(wait);
	}
}

/** Rows on screen: the path, CPUs, tracks of threads. A row has one or more series, one after the other. */
function makeRows(model) {
	const cpus = model.ofCpu.filter((cpu) => cpu.last > cpu.first)
		.map((cpu) => ({name: cpu.name, full: cpu.name, kind: 'cpu', series: [cpu], sub: false}));
	const threads = model.tracks.map((track) => {
		const sub = !track.main && !track.lane;
		return {name: track.name, full: sub ? `${track.name} of ${track.process}` : track.name, kind: 'thread', sub,
			series: track.threads.map((thread) => model.ofThread[thread])};
	});
	model.rows = [...cpus, ...threads];
	if (model.path)
		model.rows.unshift({name: 'critical path', full: 'critical path', kind: 'path', series: [model.path], sub: false});
}

/** Takes what readData() returns, and completes it. */
function makeModel(data) {
	const model = data;
	const count = model.columns.segmentStart.length;
	Object.assign(model, {segments: 0, start: new Float64Array(count), weight: new Float64Array(count),
		stack: new Uint32Array(count)});
	model.ofThread = model.threads.map((thread, i) =>
		makeSeries(model, i, 'thread', thread.name, thread.start, thread.end, thread.segments));
	if (model.path)
		model.path = makeSeries(model, 0, 'path', model.path.name, model.path.start, model.path.end, model.path.segments);
	model.ofCpu = model.cpus.map((segments, i) => makeSeries(model, i, 'cpu', `CPU ${i}`, 0, model.window_ns, segments));
	model.category = Uint8Array.from(model.columns.stackFrame, (frame) => model.columns.frameCategory[frame]);
	model.stackSums = new Float64Array(model.category.length);
	makeNodes(model);
	makeStretches(model);
	makeWaits(model);
	makeRows(model);
	return model;
}

/** Returns the first segment of the series that ends after ns. */
function segmentAt(model, series, ns) {
	let low = series.first, high = series.last;
	while (low < high) {
		const middle = (low + high) >> 1;
		const end = middle + 1 < series.last ? model.start[middle + 1] : series.end;
		if (end <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/** Passes each segment of the series, and its weight in the range [from, to), to visit(segment, weight). */
function visitRange(model, series, from, to, visit) {
	const whole = from <= series.start && to >= series.end;
	let first = whole ? series.first : segmentAt(model, series, from);
	if (!whole && from >= series.end)
		return;
	// What has no length ends where it begins: at the begin of a range it is in that range, not in the one before.
	while (first > series.first && model.start[first - 1] >= from)
		first--;
	for (let i = first; i < series.last; i++) {
		const start = model.start[i], end = i + 1 < series.last ? model.start[i + 1] : series.end;
		if (whole) {
			visit(i, model.weight[i]);
			continue;
		}
		// What is at the end of a series is in the range up to there: none may begin there.
		if (start >= to && to < series.end)
			break;
		// A folded weight has no length of its own; the rest is divided evenly over its length.
		const share = end > start ? (Math.min(end, to) - Math.max(start, from)) / (end - start) : 1;
		if (share > 0)
			visit(i, model.weight[i] * share);
	}
}

/**
 * Passes each stack that has time in the range, and this time, to visit(stack, ns), in the order of stacks. The sums
 * are kept from call to call: with an array for each thread the cost would be threads by stacks.
 */
function visitStacks(model, list, from, to, visit) {
	const sums = model.stackSums, touched = [];
	for (const series of list)
		visitRange(model, series, from, to, (i, weight) => {
			const stack = model.stack[i];
			if (sums[stack] === 0)
				touched.push(stack);
			sums[stack] += weight;
		});
	for (const stack of Uint32Array.from(touched).sort()) {
		const ns = sums[stack];
		sums[stack] = 0;
		if (ns > 0)
			visit(stack, ns);
	}
}

/** Returns the time by category of one series in a range. */
function timesByCategory(model, list, from, to) {
	const times = new Float64Array(model.categories.length);
	for (const series of list)
		visitRange(model, series, from, to, (i, weight) => {
			times[model.category[model.stack[i]]] += weight;
		});
	return times;
}

/** Returns {running, runnable, blocked, unknown}: the same states as those of the JSON report. */
function timesByState(model, series) {
	const states = {running: 0, runnable: 0, blocked: 0, unknown: 0};
	timesByCategory(model, [series], series.start, series.end).forEach((ns, category) => {
		states[model.categories[category].state] += ns;
	});
	return states;
}

/** Returns the time of a series in a range. */
function sumRange(series, from, to) {
	return timesByCategory(this.model, [series], from, to).reduce((ns, part) => ns + part, 0);
}

function funcName(model, func) {
	return model.strings[model.columns.funcName[func]];
}

function funcLibrary(model, func) {
	const lib = model.columns.funcLib[func];
	return lib ? model.strings[lib - 1] : '';
}

/** Returns the frames of a stack, the innermost first: {func, line}. */
function framesOf(model, stack) {
	const frames = [];
	for (let at = stack + 1; at; at = model.columns.stackPrefix[at - 1]) {
		const frame = model.columns.stackFrame[at - 1];
		frames.push({func: model.columns.frameFunc[frame], line: model.columns.frameLine[frame]});
	}
	return frames;
}

function leafName(model, stack) {
	return funcName(model, model.columns.frameFunc[model.columns.stackFrame[stack]]);
}

/** Returns the details of the wait of a thread at ns, or undefined. */
function waitAt(model, thread, ns) {
	const waits = model.waitsOf.get(thread) || [];
	let low = 0, high = waits.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (waits[middle].start + waits[middle].ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < waits.length && waits[low].start <= ns ? waits[low] : undefined;
}

function isIdle(category) {
	return category === IDLE || category === JOBS;
}

function threadTitle(model, number) {
	const thread = model.threads[number];
	return thread.label.startsWith(thread.name) ? `${thread.label} (${thread.tid})` : `${thread.name} (${thread.tid}) of ${thread.label}`;
}
