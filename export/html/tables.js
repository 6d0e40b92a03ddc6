// SPDX-License-Identifier: GPL-2.0-or-later
// tables.js - the tables of the report, with buttons that mark a row's time in the timeline.

const FEW_ROWS = 10;

/**
 * Shows a table: columns are {title, get(row) -> value, text(value) or none, number, wide}; a column with `mark(row)`
 * has a button that marks what the function returns. A click on a title sorts by that column.
 */
function showTable(box, title, note, columns, rows, mark) {
	const caption = make('caption', {}, title, ' ', make('span', {}, note || ''));
	const head = make('tr'), body = make('tbody'), more = make('button', {type: 'button', className: 'more'});
	let shown = FEW_ROWS, order = rows;

	function cellOf(column, row) {
		const value = column.get(row), text = column.text ? column.text(value, row) : value === null || value === undefined ? '' : value;
		const cell = make('td', {className: [column.number ? 'number' : '', column.wide ? 'wide' : ''].join(' ').trim()});
		if (text instanceof Node)
			cell.append(text);
		else if (column.mark && text !== '')
			cell.append(make('button', {type: 'button', className: 'link', onclick: () => mark(column.mark(row))}, text));
		else
			cell.append(printable(text));
		return cell;
	}

	function fill() {
		body.replaceChildren(...order.slice(0, shown).map((row) => make('tr', {}, ...columns.map((column) => cellOf(column, row)))));
		more.hidden = shown >= rows.length;
		more.textContent = `all ${rows.length} rows`;
	}

	for (const column of columns) {
		const cell = make('th', {scope: 'col', className: [column.number ? 'number' : '', column.wide ? 'wide' : ''].join(' ').trim()});
		const button = make('button', {type: 'button', title: 'sort'}, column.title);
		button.addEventListener('click', () => {
			const sign = column.number ? -1 : 1;
			const key = (row) => column.get(row) ?? '';
			order = [...rows].sort((one, other) => sign * (key(one) > key(other) ? 1 : key(one) < key(other) ? -1 : 0));
			head.querySelectorAll('th').forEach((other) => other.removeAttribute('aria-sort'));
			cell.setAttribute('aria-sort', column.number ? 'descending' : 'ascending');
			fill();
		});
		cell.append(button);
		head.append(cell);
	}
	more.addEventListener('click', () => {
		shown = rows.length;
		fill();
	});
	fill();
	box.replaceChildren(make('div', {className: 'table-box'}, make('table', {}, caption, make('thead', {}, head), body)), more);
}

const timeColumn = (title, get, more) => ({title, get, text: (ns) => ns === null || ns === undefined ? '' : duration(ns), number: true, ...more});
const countColumn = (title, get, more) => ({title, get, number: true, ...more});
const textColumn = (title, get, more) => ({title, get, ...more});

/** What marks are made of: functions by name, and waits by object, waker or holder. */
const byFunction = (name, library) => ({title: name, func: name, library});

function functionTable(report) {
	return {title: 'Functions that ran', id: 'functions', rows: report.running_functions || [], columns: [
		timeColumn('self', (row) => row.self_ns),
		timeColumn('total', (row) => row.total_ns),
		textColumn('function', (row) => row.function, {mark: (row) => byFunction(row.function)}),
		textColumn('library', (row) => row.library)]};
}

function waitTables(report) {
	const objects = (report.waited_objects || []).filter((row) => row.object);
	return [
		{title: 'Waits', id: 'waits', rows: report.waits || [], note: 'without idle ones', columns: [
			timeColumn('sum', (row) => row.total_ns),
			timeColumn('on the path', (row) => row.path_ns),
			countColumn('count', (row) => row.count),
			timeColumn('median', (row) => row.p50_ns, {wide: true}),
			timeColumn('longest', (row) => row.max_ns, {wide: true}),
			textColumn('reason', (row) => row.reason, {mark: (row) => ({title: row.reason, func: row.reason, object: row.object})}),
			textColumn('for', (row) => row.object),
			textColumn('in', (row) => row.chain)]},
		{title: 'Files and other objects', id: 'objects', rows: objects, note: 'with idle waits', columns: [
			timeColumn('sum', (row) => row.ns),
			countColumn('count', (row) => row.count),
			timeColumn('longest', (row) => row.longest_ns),
			timeColumn('then runnable', (row) => row.then_runnable_ns, {wide: true}),
			textColumn('object', (row) => row.object, {mark: (row) => ({title: row.object, object: row.object, func: row.reason})}),
			textColumn('reason', (row) => row.reason)]},
		{title: 'Functions that waited', id: 'wait-functions', rows: report.wait_functions || [], columns: [
			timeColumn('sum', (row) => row.total_ns),
			countColumn('count', (row) => row.count),
			timeColumn('longest', (row) => row.max_ns),
			textColumn('function', (row) => row.function, {mark: (row) => byFunction(row.function)}),
			textColumn('library', (row) => row.library),
			textColumn('same waits', (row) => row.same_waits, {wide: true})]},
	];
}

function gilTables(report) {
	return (report.interpreter_locks || []).map((lock) => ({
		title: `Lock of the interpreter${lock.language ? ` (${lock.language})` : ''} of ${lock.process} ${lock.pid}`,
		note: `waited for ${duration(lock.total_ns)} in all; its holders meanwhile`, id: `gil-${lock.pid}`, rows: lock.holders || [], columns: [
			timeColumn('others waited', (row) => row.waited_ns),
			timeColumn('held', (row) => row.held_ns),
			textColumn('thread', (row) => row.name, {mark: (row) => ({title: row.name, tid: row.tid})}),
			textColumn('in', (row) => row.function)]}));
}

function wakerTables(report) {
	const distribution = [timeColumn('sum', (row) => row.total_ns), countColumn('count', (row) => row.count),
		timeColumn('median', (row) => row.p50_ns, {wide: true}), timeColumn('longest', (row) => row.max_ns)];
	return [
		{title: 'Lock holders', id: 'locks', rows: report.holders || [], note: 'while others waited', columns: [...distribution,
			textColumn('holder', (row) => row.name, {mark: (row) => ({title: `lock held by ${row.name}`, holder: row.name})}),
			countColumn('tid', (row) => row.tid || '')]},
		{title: 'Wakers', id: 'wakers', rows: report.wakers || [], note: 'what ended waits', columns: [...distribution,
			textColumn('waker', (row) => row.name, {mark: (row) => ({title: `woken by ${row.name}`, waker: row.name, chain: row.chain})}),
			textColumn('from', (row) => row.chain)]},
		{title: 'CPU contention', id: 'run-queue', rows: report.rivals || [], note: 'what had the CPUs while threads waited for one', columns: [
			timeColumn('sum', (row) => row.total_ns), countColumn('count', (row) => row.count), timeColumn('longest', (row) => row.max_ns),
			textColumn('task', (row) => row.name, {mark: (row) => ({title: row.name, tid: row.tid})}), countColumn('tid', (row) => row.tid || '')]},
	];
}

function diskTables(report) {
	const columns = (name) => [
		timeColumn('waited', (row) => row.waited_ns), countColumn('waits', (row) => row.waits),
		countColumn('reads', (row) => row.reads), {title: 'read', get: (row) => row.read_bytes, text: bytesText, number: true},
		countColumn('writes', (row) => row.writes), {title: 'written', get: (row) => row.written_bytes, text: bytesText, number: true},
		timeColumn('queued', (row) => row.queued_ns, {wide: true}), timeColumn('on the device', (row) => row.device_ns, {wide: true}), name];
	return [
		{title: 'Block devices', id: 'devices', rows: report.devices || [], columns: columns(textColumn('device', (row) => row.name))},
		{title: 'Disk requests by file', id: 'io', rows: report.io_files || [], columns: columns(textColumn('file', (row) => row.path,
			{mark: (row) => ({title: row.path, object: row.path})}))},
		{title: 'Page faults by file', id: 'faults', rows: report.faulted_files || [], columns: [
			timeColumn('sum', (row) => row.ns), timeColumn('waited', (row) => row.waited_ns), countColumn('count', (row) => row.count),
			timeColumn('longest', (row) => row.longest_ns),
			textColumn('file', (row) => row.path, {mark: (row) => ({title: row.path, object: row.path})})]},
	];
}

function threadTables(model) {
	const {report} = model;
	const rows = model.threads.map((thread, number) => ({...thread, number}));
	rows.sort((one, other) => other.states[1] - one.states[1]);
	return [
		{title: 'Threads', id: 'threads', rows, note: 'time by state', columns: [
			timeColumn('running', (row) => row.states[1]), timeColumn('runnable', (row) => row.states[2]),
			timeColumn('waiting', (row) => row.states[3]), timeColumn('unknown', (row) => row.states[0], {wide: true}),
			timeColumn('lifetime', (row) => row.end - row.start, {wide: true}),
			textColumn('thread', (row) => row.name, {mark: (row) => ({title: row.name, thread: row.number})}), countColumn('tid', (row) => row.tid),
			textColumn('process', (row) => row.label)]},
		{title: 'Processes', id: 'processes', rows: report.processes || [], columns: [
			timeColumn('running', (row) => row.states.running), timeColumn('from', (row) => row.start_ns), timeColumn('to', (row) => row.end_ns),
			countColumn('threads', (row) => row.threads), textColumn('end', (row) => row.exit_signal !== null ? `signal ${row.exit_signal}`
				: row.exit_status !== null ? `status ${row.exit_status}` : ''),
			countColumn('pid', (row) => row.pid), textColumn('process', (row) => row.name),
			textColumn('arguments', (row) => (row.args || []).join(' ').slice(0, 300), {wide: true})]},
		{title: 'CPUs', id: 'cpus', rows: report.cpus || [], columns: [
			countColumn('CPU', (row) => row.cpu), timeColumn('busy', (row) => row.busy_ns), timeColumn('idle', (row) => row.idle_ns),
			textColumn('most by', (row) => (row.tasks || []).slice(0, 4).map((task) => `${task.name} ${duration(task.ns)}`).join(', '))]},
	];
}

function showTables(state) {
	const {model} = state, box = byId('tables'), links = byId('table-links');
	const all = [...waitTables(model.report), ...wakerTables(model.report).slice(0, 1), ...gilTables(model.report),
		...wakerTables(model.report).slice(1), functionTable(model.report), ...diskTables(model.report), ...threadTables(model)];
	for (const table of all) {
		if (table.rows.length === 0)
			continue;
		const part = make('div', {id: `table-${table.id}`});
		const more = (model.report.omitted || {})[{waits: 'waits', objects: 'waited_objects', functions: 'running_functions',
			wakers: 'wakers', locks: 'holders', 'run-queue': 'rivals', io: 'io_files', faults: 'faulted_files', processes: 'processes',
			'wait-functions': 'wait_functions'}[table.id]];
		const note = [table.note, more ? `${more} more rows are in wallprof report --json` : ''].filter(Boolean).join('; ');
		showTable(part, table.title, note, table.columns, table.rows, state.mark);
		box.append(part);
		links.append(make('a', {href: `#table-${table.id}`}, table.title));
	}
}

/** What is missing in the recording, and what this page leaves out. */
function showLosses(state) {
	const {model} = state, {report, folded, waits} = model, list = make('ul'), add = (text) => list.append(make('li', {}, text));
	const losses = report.losses || [];
	if (losses.length === 0)
		add('No events were lost.');
	for (const loss of losses)
		add(`${loss.count} ${loss.kind} records lost (${loss.cause}), CPU ${loss.cpu}, from ${duration(loss.from_ns)} to ${duration(loss.to_ns)}`);
	if (report.contradictions)
		add(`The kernel did not trace ${report.contradictions} context switches.`);
	for (const note of report.notes || [])
		add(note);
	if (report.stacks && report.stacks.walked)
		add(`Stacks: ${percent(report.stacks.whole, report.stacks.walked)} of ${report.stacks.walked} are complete, ${report.stacks.guessed} have a part that is guessed.`);
	if (report.recording)
		add(`Recording took ${duration(report.recording.ns)} of the running time of the threads.`);
	if (report.budget && report.budget.unsampled)
		add(`--budget left out the stacks of ${report.budget.unsampled} of ${report.budget.switch_outs} switches.`);
	add(folded.intervals
		? `${folded.intervals} intervals shorter than ${duration(folded.below_ns)} (${duration(folded.ns)} in all) are folded: they have no place of their own in the timeline, but they are in all sums.`
		: 'All intervals are in the timeline; none is folded.');
	if (folded.cpu_runs)
		add(`${folded.cpu_runs} runs on CPUs shorter than ${duration(folded.cpu_below_ns)} are folded likewise.`);
	add(waits.detailed < waits.all
		? `${waits.detailed} of ${waits.all} waits have details (object, waker): those of ${duration(waits.least_ns)} and more.`
		: `All ${waits.all} waits have details (object, waker).`);
	const omitted = Object.entries(report.omitted || {}).filter(([name]) => !name.startsWith('places'));
	if (omitted.length)
		add(`Rows of long tables that are not here: ${omitted.map(([name, count]) => `${name} ${count}`).join(', ')}.`);
	if (model.sources_left_out)
		add(`${model.sources_left_out} source texts are left out, because they are long.`);
	byId('losses').append(list);
}

function showSettings(state) {
	const {model} = state, long = ([, value]) => value.length < 400;
	byId('settings').append(definitions([['started', model.report.start_time], ...Object.entries(model.settings).filter(long)]));
}
