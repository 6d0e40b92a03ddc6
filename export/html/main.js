// SPDX-License-Identifier: GPL-2.0-or-later
// main.js - reads the data, and connects the parts of the page.

const SETTLED_MS = 150;

/** Returns a mark of each segment: 1 if it is what is looked for; null: nothing is looked for. */
function makeMarks(model, wanted) {
	if (!wanted)
		return null;
	const marks = new Uint8Array(model.start.length), text = wanted.text ? wanted.text.toLowerCase() : '';
	const fits = (name) => wanted.func !== undefined ? name === wanted.func : text !== '' && name.toLowerCase().includes(text);
	if (wanted.thread !== undefined || wanted.tid) {
		for (const series of model.ofThread)
			if (series.number === wanted.thread || (wanted.tid && model.threads[series.number].tid === wanted.tid))
				marks.fill(1, series.first, series.last);
		return marks;
	}
	if (text || (wanted.func !== undefined && !wanted.object))
		markStacks(model, marks, fits, text);
	if (text || wanted.object || wanted.waker || wanted.holder)
		markWaits(model, marks, wanted, text);
	if (text)
		for (const series of model.ofThread)
			if (threadTitle(model, series.number).toLowerCase().includes(text))
				marks.fill(1, series.first, series.last);
	return marks;
}

function markStacks(model, marks, fits, text) {
	const funcs = Uint8Array.from(model.columns.funcName, (name, func) =>
		fits(model.strings[name]) || (text !== '' && funcLibrary(model, func).toLowerCase().includes(text)) ? 1 : 0);
	const {stackPrefix, stackFrame, frameFunc} = model.columns, stacks = new Uint8Array(stackPrefix.length);
	for (let i = 0; i < stacks.length; i++)
		stacks[i] = funcs[frameFunc[stackFrame[i]]] || (stackPrefix[i] && stacks[stackPrefix[i] - 1]);
	for (let i = 0; i < marks.length; i++)
		marks[i] |= stacks[model.stack[i]];
}

function markWaits(model, marks, wanted, text) {
	for (const wait of model.waitList) {
		const fits = text ? `${wait.object}\n${wait.waker}\n${wait.holder}`.toLowerCase().includes(text)
			: wanted.object ? wait.object === wanted.object
				: wanted.holder ? wait.holder === wanted.holder
					: wait.waker === wanted.waker && (!wanted.chain || wait.chain === wanted.chain);
		if (!fits)
			continue;
		const series = model.ofThread[wait.thread], segment = segmentAt(model, series, wait.start + wait.ns / 2);
		if (segment < series.last && (!wanted.func || leafName(model, model.stack[segment]) === wanted.func))
			marks[segment] = 1;
	}
}

/** Returns the longest marked segments, in order of time: {row, start, end}. */
function findMatches(model, marks) {
	const found = [];
	model.rows.forEach((row, number) => {
		if (row.kind === 'path')
			return;
		for (const series of row.series)
			for (let i = series.first; i < series.last; i++)
				if (marks[i])
					found.push({row: number, start: model.start[i], end: i + 1 < series.last ? model.start[i + 1] : series.end, ns: model.weight[i]});
	});
	const all = found.length, sum = found.reduce((ns, match) => ns + match.ns, 0);
	found.sort((one, other) => (other.end - other.start) - (one.end - one.start));
	return {all, sum, list: found.slice(0, 2000)};
}

function makeSwatch(state, category, text) {
	const colour = make('i', {'aria-hidden': 'true'});
	colour.style.background = state.colours.css[category];
	return make('span', {className: 'swatch', title: state.model.categories[category].meaning}, colour,
		state.model.categories[category].name, ' ', make('b', {}, text));
}

/** Returns the frames as text, the innermost first. Of frames of one library that follow each other the last names it. */
function stackTexts(model, stack) {
	const frames = framesOf(model, stack).map(({func, line}) =>
		({text: funcName(model, func) + (line ? `:${line}` : ''), library: funcLibrary(model, func)}));
	return frames.map(({text, library}, i) =>
		library && (i + 1 === frames.length || frames[i + 1].library !== library) ? `${text} (${library})` : text);
}

function detailOf(state, found) {
	const {model} = state, {series, segment, row, ns} = found;
	if (segment === undefined)
		return [['track', model.rows[row].full], ['at', duration(ns)]];
	const stack = model.stack[segment], category = model.categories[model.category[stack]];
	const start = model.start[segment], end = segment + 1 < series.last ? model.start[segment + 1] : series.end;
	const pairs = [], frames = stackTexts(model, stack);
	let thread = series.kind === 'thread' ? series.number : NONE;
	if (series.kind === 'path') {
		const stretch = model.stretches.find((item) => ns >= item.start && ns < item.end);
		thread = stretch ? stretch.thread : NONE;
		pairs.push(['on the path', stretch ? `${stretch.name}${thread < model.threads.length ? `, ${threadTitle(model, thread)}` : ''}` : 'a folded stretch']);
	} else {
		pairs.push([series.kind === 'cpu' ? 'CPU' : 'thread', series.kind === 'cpu' ? series.name : threadTitle(model, thread)]);
	}
	const wait = category.state === 'blocked' && thread < model.threads.length ? waitAt(model, thread, ns) : undefined;
	pairs.push(['state', `${leafName(model, stack)}: ${category.name}`], ['for', wait ? wait.object : '']);
	pairs.push(['time', `${duration(end - start)}, from ${moment(start, Math.max(1, (end - start) / 10))}`]);
	if (Math.abs(model.weight[segment] - (end - start)) > 0.05 * (end - start) + 1000)
		pairs.push(['counts', `${duration(model.weight[segment])} in sums (short intervals around it are folded, or samples share it)`]);
	if (wait)
		pairs.push(['woken by', [wait.waker, wait.wakerThread < model.threads.length ? `(${model.threads[wait.wakerThread].tid})` : '', wait.chain ? `from ${wait.chain}` : ''].join(' ').trim()],
			['lock held by', wait.holder]);
	pairs.push(['stack', frames.join(' ← ')]);
	return pairs;
}

function startPage(model) {
	const state = {model, from: 0, to: model.window_ns, selection: null, chosen: new Set(), marks: null, wanted: null,
		colours: readColours(model.categories.length)};
	let timer = 0, matches = {list: [], all: 0, sum: 0}, current = -1;
	const tip = byId('tip'), scope = byId('scope'), search = byId('search');
	const readers = () => ({mode: byId('flame-mode').value, withIdle: !byId('hide-idle').checked});

	state.swatch = (category, text) => makeSwatch(state, category, text);
	state.hideTip = () => {
		tip.hidden = true;
	};
	state.showTipText = (event, ...content) => {
		tip.replaceChildren(...content);
		tip.hidden = false;
		const {width, height} = tip.getBoundingClientRect();
		tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8))}px`;
		tip.style.top = `${event.clientY + 18 + height > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 18}px`;
	};
	state.showTip = (event, found) => {
		if (!found || found.segment === undefined) {
			state.hideTip();
			return;
		}
		const text = make('div');
		for (const [term, value] of detailOf(state, found))
			if (value)
				text.append(make('div', {}, make('span', {className: 'dim'}, `${term}: `), value.length > 300 ? `${value.slice(0, 300)}…` : value));
		state.showTipText(event, text);
	};
	state.showDetail = (found) => byId('detail').replaceChildren(...(found ? [definitions(detailOf(state, found))] : []));

	const tracks = makeTracks(state, changed), flame = makeFlame(state), source = makeSource(state);
	Object.assign(state, {tracks, flame});

	/** The range that sums are of: the selection, else what is in view. */
	const range = () => state.selection && state.selection[1] > state.selection[0] ? state.selection : [state.from, state.to];

	/** The tracks that sums are of. */
	function chosenSeries() {
		if (scope.value === 'path')
			return [model.path];
		if (scope.value === 'chosen')
			return [...state.chosen].flatMap((row) => model.rows[row].series);
		return model.ofThread;
	}

	function showScope(wanted) {
		const options = [];
		if (model.path)
			options.push(['path', 'the critical path']);
		options.push(['all', `all ${model.threads.length} threads`]);
		if (state.chosen.size)
			options.push(['chosen', [...state.chosen].slice(0, 3).map((row) => model.rows[row].full).join(', ') + (state.chosen.size > 3 ? ' …' : '')]);
		const before = wanted || scope.value;
		scope.replaceChildren(...options.map(([value, text]) => make('option', {value}, text)));
		scope.value = options.some(([value]) => value === before) ? before : options[0][0];
	}

	function showRange() {
		const [from, to] = range(), step = Math.max(1, (to - from) / 1000);
		byId('range').textContent = `${state.selection ? 'selected' : 'shown'}: ${moment(from, step)} to ${moment(to, step)} (${duration(to - from)} of ${duration(model.window_ns)})`
			+ (state.wanted ? `; ${printable(state.wanted.title)}: ${matches.all} places, ${duration(matches.sum)}` : '');
		byId('zoom-range').disabled = !state.selection;
	}

	function showFunctions(list, from, to, withIdle) {
		const sums = sumFunctions(model, list, from, to, withIdle).sort((one, other) => other.self - one.self || other.total - one.total);
		const state_ = (row) => {
			let largest = 0;
			row.kinds.forEach((ns, category) => {
				largest = ns > row.kinds[largest] ? category : largest;
			});
			return state.swatch(largest, '');
		};
		showTable(byId('flame-table'), 'Functions and waits of the flame graph', 'self: innermost on the stack', [
			timeColumn('self', (row) => row.self), timeColumn('total', (row) => row.total),
			textColumn('name', (row) => funcName(model, row.func), {mark: (row) => byFunction(funcName(model, row.func))}),
			textColumn('library', (row) => funcLibrary(model, row.func)), textColumn('mostly', state_, {text: (value) => value, wide: true})],
		sums.slice(0, 500), state.mark);
	}

	function showSums() {
		const [from, to] = range(), list = chosenSeries(), {mode, withIdle} = readers();
		const root = flame.show(list, from, to, mode, withIdle);
		byId('flame-note').textContent = `${duration(root.total)} from ${moment(from, Math.max(1, (to - from) / 100))} to ${moment(to, Math.max(1, (to - from) / 100))}`;
		showFunctions(list, from, to, withIdle);
		source.show(list, from, to, withIdle);
		const times = timesByCategory(model, model.ofThread, from, to);
		byId('swatches').replaceChildren(...STACKED.filter((category) => times[category] > 0)
			.sort((one, other) => times[other] - times[one]).map((category) => state.swatch(category, duration(times[category]))));
	}

	function later() {
		clearTimeout(timer);
		timer = setTimeout(showSums, SETTLED_MS);
	}

	function changed(what) {
		if (what === 'choice')
			showScope(state.chosen.size ? ([...state.chosen].every((row) => model.rows[row].kind === 'path') ? 'path' : 'chosen') : '');
		showRange();
		later();
	}

	function look(wanted) {
		state.wanted = wanted;
		state.marks = makeMarks(model, wanted);
		matches = wanted ? findMatches(model, state.marks) : {list: [], all: 0, sum: 0};
		current = -1;
		tracks.redraw();
		showRange();
	}

	/** Goes to a match: the longest first, then the next one. */
	function go(step) {
		if (matches.list.length === 0)
			return;
		current = current < 0 ? 0 : (current + step + matches.list.length) % matches.list.length;
		const match = matches.list[current], size = Math.max(3 * (match.end - match.start), 2000);
		const middle = (match.start + match.end) / 2;
		tracks.setRange(middle - size / 2, middle + size / 2);
		tracks.scrollToRow(match.row);
		const series = model.rows[match.row].series.find((item) => middle >= item.start && middle <= item.end);
		if (series)
			state.showDetail({row: match.row, series, segment: segmentAt(model, series, middle), ns: middle});
	}

	state.mark = (wanted) => {
		search.value = wanted.title;
		look(wanted);
		go(1);
		byId('timeline-title').scrollIntoView({block: 'start'});
	};

	function escape() {
		if (state.wanted) {
			search.value = '';
			look(null);
		} else if (state.selection) {
			state.selection = null;
			changed('selection');
		} else if (state.chosen.size) {
			state.chosen.clear();
			changed('choice');
		} else {
			tracks.setRange(0, model.window_ns);
		}
		state.showDetail(null);
		tracks.redraw();
	}

	function chooseNext(step) {
		const last = state.chosen.size ? Math.max(...state.chosen) : -1;
		const row = Math.max(0, Math.min(model.rows.length - 1, last + step));
		state.chosen = new Set();
		tracks.choose(row, false);
		tracks.scrollToRow(row);
	}

	const zoomToSelection = () => {
		if (!state.selection)
			return;
		const [from, to] = state.selection;
		state.selection = null;
		tracks.setRange(from, to);
	};
	const toggleHelp = () => {
		byId('help').hidden = !byId('help').hidden;
		byId('help-button').setAttribute('aria-expanded', String(!byId('help').hidden));
	};
	const keys = {ArrowLeft: () => tracks.pan(-0.2), ArrowRight: () => tracks.pan(0.2), a: () => tracks.pan(-0.2), d: () => tracks.pan(0.2),
		w: () => tracks.zoom(0.6), s: () => tracks.zoom(1 / 0.6), '+': () => tracks.zoom(0.6), '=': () => tracks.zoom(0.6), '-': () => tracks.zoom(1 / 0.6),
		0: () => tracks.setRange(0, model.window_ns), z: zoomToSelection, n: () => go(1), N: () => go(-1), '/': () => search.focus(), '?': toggleHelp,
		Escape: escape};

	document.addEventListener('keydown', (event) => {
		const inside = event.target.closest('input, select, textarea');
		if (event.ctrlKey || event.metaKey || event.altKey || (inside && event.key !== 'Escape'))
			return;
		const onTracks = event.target.closest('#tracks');
		const action = keys[event.key] || (onTracks && {ArrowUp: () => chooseNext(-1), ArrowDown: () => chooseNext(1)}[event.key]);
		if (!action)
			return;
		byId('tracks').classList.remove('pointed');
		event.preventDefault();
		action();
	});
	let typing = 0;
	search.addEventListener('input', () => {
		clearTimeout(typing);
		typing = setTimeout(() => look(search.value.trim() ? {title: search.value.trim(), text: search.value.trim()} : null), 120);
	});
	search.addEventListener('keydown', (event) => {
		if (event.key === 'Enter') {
			clearTimeout(typing);
			if (!state.wanted || state.wanted.title !== search.value.trim())
				look(search.value.trim() ? {title: search.value.trim(), text: search.value.trim()} : null);
			go(event.shiftKey ? -1 : 1);
		} else if (event.key === 'Escape') {
			search.blur();
		}
	});
	const actions = {next: () => go(1), previous: () => go(-1), 'zoom-in': () => tracks.zoom(0.6), 'zoom-out': () => tracks.zoom(1 / 0.6),
		'zoom-range': zoomToSelection, 'zoom-all': () => tracks.setRange(0, model.window_ns), 'help-button': toggleHelp};
	for (const [id, action] of Object.entries(actions))
		byId(id).addEventListener('click', action);
	for (const element of [scope, byId('flame-mode'), byId('hide-idle')])
		element.addEventListener('change', showSums);
	// Paper is white in both modes. What is printed is taken at once, so nothing may wait for the next frame.
	for (const query of ['(prefers-color-scheme: dark)', 'print'])
		matchMedia(query).addEventListener('change', () => {
			state.colours = readColours(model.categories.length);
			tracks.draw();
			showSums();
			showLegend();
		});

	function showLegend() {
		byId('legend').replaceChildren(make('ul', {}, ...model.categories.map((category, i) =>
			make('li', {}, state.swatch(i, category.meaning)))));
	}

	showScope('path');
	byId('page').hidden = false;
	tracks.draw();
	showRange();
	// The timeline is on the screen before sums are made, and these before the tables.
	requestAnimationFrame(() => setTimeout(() => {
		showSums();
		showTables(state);
		showLosses(state);
		showLegend();
		showSettings(state);
		document.documentElement.dataset.ready = 'all';
	}));
	return state;
}

async function start() {
	const problem = byId('problem');
	try {
		if (typeof DecompressionStream === 'undefined')
			throw new Error('this browser has no DecompressionStream (Chrome 86, Firefox 113, Safari 16.4 and later have it)');
		const model = makeModel(readData(await unpack(byId('data').textContent)));
		byId('data').remove();
		document.documentElement.dataset.ready = 'data';
		const state = startPage(model);
		byId('text-report').open = false;
		// For tests, and for those who want to look at the numbers.
		window.wallprof = {model, state, timesByState, makeFlameTree, sumRange};
	} catch (error) {
		problem.textContent = printable(`The timeline cannot be shown: ${error.message}. The answer above and the report below are complete.`);
		problem.hidden = false;
		byId('page').hidden = true;
		console.error(error);
	}
}

start();
