// SPDX-License-Identifier: GPL-2.0-or-later
// source.js - source texts that the capture contains, and the time of each line in the range that is shown.

const AROUND = 3;

/** Returns a Map: source -> Map: line -> {ran, waited, total}. A moment counts once for each line of its stack. */
function sumLines(model, list, from, to, withIdle) {
	const files = new Map(), columns = model.columns;
	visitStacks(model, list, from, to, (stack, ns) => {
		const category = model.category[stack], seen = new Set();
		if (!withIdle && isIdle(category))
			return;
		const runs = model.categories[category].state === 'running';
		let innermost = true;
		for (const {func, line} of framesOf(model, stack)) {
			const source = columns.funcSource[func];
			if (!source || !line)
				continue;
			if (!files.has(source - 1))
				files.set(source - 1, new Map());
			const lines = files.get(source - 1);
			if (!lines.has(line))
				lines.set(line, {ran: 0, waited: 0, total: 0});
			const sum = lines.get(line);
			if (innermost)
				sum[runs ? 'ran' : 'waited'] += ns;
			innermost = false;
			if (!seen.has(`${source} ${line}`))
				sum.total += ns;
			seen.add(`${source} ${line}`);
		}
	});
	return files;
}

function makeSource(state) {
	const {model} = state, choice = byId('source-file'), box = byId('source'), whole = byId('source-whole');
	let files = new Map();

	function costOf(source) {
		let cost = 0;
		for (const sum of (files.get(source) || new Map()).values())
			cost += sum.ran + sum.waited;
		return cost;
	}

	/** Lines with a cost, with some around them; null stands for those between. */
	function linesToShow(texts, lines) {
		if (whole.checked || !texts)
			return texts ? texts.map((text, i) => i + 1) : [...lines.keys()].sort((one, other) => one - other);
		const shown = [];
		for (let line = 1, last = 0; line <= texts.length; line++) {
			let near = false;
			for (let other = line - AROUND; other <= line + AROUND && !near; other++)
				near = lines.has(other);
			if (!near)
				continue;
			if (last !== line - 1)
				shown.push(null);
			shown.push(line);
			last = line;
		}
		return shown;
	}

	function showFile() {
		const source = Number(choice.value), lines = files.get(source) || new Map(), file = model.sources[source];
		if (!file)
			return;
		const texts = file.text === null ? null : file.text.split('\n');
		const most = Math.max(1, ...[...lines.values()].map((sum) => sum.ran + sum.waited));
		const body = make('tbody');
		for (const line of linesToShow(texts, lines)) {
			const sum = lines.get(line);
			const cell = (ns) => make('td', {className: 'number'}, sum && ns(sum) ? duration(ns(sum)) : '');
			body.append(line === null ? make('tr', {className: 'gap'}, make('td', {colSpan: 5}, '⋯'))
				: make('tr', {className: sum && sum.ran + sum.waited > most / 10 ? 'hot' : ''}, cell((s) => s.ran), cell((s) => s.waited), cell((s) => s.total),
					make('td', {className: 'number'}, line), make('td', {}, texts ? (texts[line - 1] || '').replace(/\t/g, '    ') : '')));
		}
		const titles = [['ran here', 'number'], ['waited here', 'number'], ['with calls', 'number'], ['line', 'number'], ['text', '']];
		box.replaceChildren(make('div', {className: 'table-box'}, make('table', {},
			make('caption', {}, file.path, ' ', make('span', {}, texts ? '' : 'the capture does not contain its text')),
			make('thead', {}, make('tr', {}, ...titles.map(([title, className]) => make('th', {scope: 'col', className}, title)))), body)));
	}

	choice.addEventListener('change', showFile);
	whole.addEventListener('change', showFile);
	return {
		show(list, from, to, withIdle) {
			const before = choice.value;
			files = sumLines(model, list, from, to, withIdle);
			const order = [...files.keys()].map((source) => [costOf(source), source])
				.sort((one, other) => (model.sources[other[1]].text !== null) - (model.sources[one[1]].text !== null) || other[0] - one[0]);
			byId('source-section').hidden = order.length === 0;
			choice.replaceChildren(...order.slice(0, 200).map(([cost, source]) => make('option', {value: String(source)},
				`${model.sources[source].path} (${duration(cost)})`)));
			if (order.some(([, source]) => String(source) === before))
				choice.value = before;
			if (order.length)
				showFile();
		},
	};
}
