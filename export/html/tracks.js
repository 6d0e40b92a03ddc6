// SPDX-License-Identifier: GPL-2.0-or-later
// tracks.js - the timeline: which rows are in view, zoom, selection, and what is under the pointer.

const ROW = 20, PATH_ROW = 30, GAP = 2;

/** Makes the timeline of the state; `changed` is called when the range, the selection or the choice changes. */
function makeTracks(state, changed) {
	const {model} = state;
	const box = byId('tracks'), view = byId('tracks-view'), canvas = byId('strips'), labels = byId('labels');
	const ruler = byId('ruler'), context = canvas.getContext('2d', {alpha: false});
	const heights = model.rows.map((row) => (row.kind === 'path' ? PATH_ROW : ROW) + GAP);
	const tops = [];
	let total = 0, picture = null, pending = false;
	for (const height of heights) {
		tops.push(total);
		total += height;
	}
	byId('tracks-height').style.height = `${total}px`;

	const labelWidth = () => box.clientWidth < 560 ? 92 : 210;
	const stripWidth = () => Math.max(50, box.clientWidth - labelWidth());
	const timeAt = (x) => state.from + (x - labelWidth()) / stripWidth() * (state.to - state.from);
	const placeOf = (ns) => labelWidth() + (ns - state.from) / (state.to - state.from) * stripWidth();

	function rowAt(y) {
		const wanted = y + box.scrollTop;
		const row = tops.findIndex((top, i) => wanted >= top && wanted < top + heights[i]);
		return row;
	}

	function resize(height, ratio) {
		const width = Math.round(box.clientWidth * ratio), lines = Math.round(height * ratio);
		const columns = Math.round(stripWidth() * ratio);
		if (picture && picture.width === width && picture.height === lines && picture.columns === columns)
			return;
		canvas.width = width;
		canvas.height = lines;
		canvas.style.width = `${box.clientWidth}px`;
		canvas.style.height = `${height}px`;
		const image = context.createImageData(width, lines);
		picture = {width, height: lines, columns, image, left: width - columns, pixels: new Uint32Array(image.data.buffer),
			sums: new Float64Array(columns * 2 * STACKED.length)};
		context.font = `${11 * ratio}px system-ui, sans-serif`;
		context.textBaseline = 'middle';
	}

	/** Elements are made again only if something of them has changed: a picture has a few milliseconds. */
	function showLabels(first, last) {
		const key = [first, last, box.scrollTop, labelWidth(), ...state.chosen].join(' ');
		if (labels.dataset.key === key)
			return;
		labels.dataset.key = key;
		const focused = document.activeElement && document.activeElement.dataset.row;
		labels.replaceChildren();
		for (let i = first; i < last; i++) {
			const row = model.rows[i];
			const button = make('button', {type: 'button', title: printable(row.full), className: row.sub ? 'sub' : '',
				'aria-pressed': String(state.chosen.has(i))}, row.name);
			button.style.top = `${tops[i] - box.scrollTop}px`;
			button.style.height = `${heights[i] - GAP}px`;
			button.style.width = `${labelWidth() - 4}px`;
			button.dataset.row = i;
			button.addEventListener('click', (event) => choose(i, event.ctrlKey || event.metaKey || event.shiftKey));
			labels.append(button);
			if (focused === String(i))
				button.focus({preventScroll: true});
		}
	}

	function drawRuler(ratio) {
		const width = Math.round(box.clientWidth * ratio), paint = ruler.getContext('2d');
		ruler.width = width;
		ruler.height = Math.round(20 * ratio);
		paint.scale(ratio, ratio);
		paint.font = '11px system-ui, sans-serif';
		paint.fillStyle = state.colours.dim;
		paint.strokeStyle = state.colours.line;
		const {step, times} = roundTimes(state.from, state.to, Math.max(2, stripWidth() / 110));
		for (const ns of times) {
			const x = placeOf(ns);
			paint.beginPath();
			paint.moveTo(x, 14);
			paint.lineTo(x, 20);
			paint.stroke();
			paint.fillText(moment(ns, step), Math.min(x + 3, box.clientWidth - 48), 13);
		}
	}

	function drawSelection(ratio, height) {
		if (!state.selection)
			return;
		const [from, to] = state.selection.map((ns) => Math.max(labelWidth(), placeOf(ns)) * ratio);
		context.fillStyle = state.colours.accent;
		context.globalAlpha = 0.16;
		context.fillRect(from, 0, to - from, height * ratio);
		context.globalAlpha = 1;
		for (const x of [from, to])
			context.fillRect(x - 1, 0, 2, height * ratio);
	}

	function draw() {
		pending = false;
		const height = Math.min(total, box.clientHeight), ratio = window.devicePixelRatio || 1;
		view.style.height = `${height}px`;
		resize(height, ratio);
		const range = {from: state.from, to: state.to, columns: picture.columns};
		const first = Math.max(0, rowAt(0)), bottom = box.scrollTop + height;
		let last = first;
		picture.pixels.fill(state.colours.backPixel);
		for (; last < model.rows.length && tops[last] < bottom; last++) {
			const y = Math.round((tops[last] - box.scrollTop) * ratio), lines = Math.round((heights[last] - GAP) * ratio);
			const above = Math.max(0, -y);
			if (above === 0 && y + lines <= picture.height)
				paintRow(model, model.rows[last], range, picture, y, lines, state.colours, state.marks);
			else if (y < picture.height && y + lines > 0)
				paintRow(model, model.rows[last], range, picture, Math.max(0, y), Math.min(lines - above, picture.height - Math.max(0, y)),
					state.colours, state.marks);
		}
		context.putImageData(picture.image, 0, 0);
		for (let i = first; i < last && !state.marks; i++)
			labelRow(model, model.rows[i], range, context, picture.left, (tops[i] - box.scrollTop) * ratio,
				(heights[i] - GAP) * ratio, state.colours, ratio);
		context.fillStyle = state.colours.back;
		context.fillRect(0, 0, picture.left, picture.height);
		drawSelection(ratio, height);
		drawRuler(ratio);
		showLabels(first, last);
		state.pictures = (state.pictures || 0) + 1;
	}

	function redraw() {
		if (!pending) {
			pending = true;
			requestAnimationFrame(draw);
		}
	}

	function setRange(from, to) {
		const least = 200, size = Math.min(model.window_ns, Math.max(least, to - from));
		state.from = Math.max(0, Math.min(from, model.window_ns - size));
		state.to = state.from + size;
		redraw();
		changed('range');
	}

	function zoom(factor, around = (state.from + state.to) / 2) {
		const size = state.to - state.from, share = (around - state.from) / size;
		setRange(around - size * factor * share, around + size * factor * (1 - share));
	}

	function pan(share) {
		const step = (state.to - state.from) * share;
		setRange(state.from + step, state.to + step);
	}

	function choose(row, further) {
		if (further && state.chosen.has(row))
			state.chosen.delete(row);
		else if (further)
			state.chosen.add(row);
		else
			state.chosen = new Set(state.chosen.size === 1 && state.chosen.has(row) ? [] : [row]);
		redraw();
		changed('choice');
	}

	function scrollToRow(row) {
		if (tops[row] < box.scrollTop)
			box.scrollTop = tops[row];
		else if (tops[row] + heights[row] > box.scrollTop + box.clientHeight)
			box.scrollTop = tops[row] + heights[row] - box.clientHeight;
	}

	/** Returns what is under the pointer: {row, series, segment, ns}, or null. */
	function under(event) {
		const area = canvas.getBoundingClientRect(), x = event.clientX - area.left;
		const row = rowAt(event.clientY - area.top), ns = timeAt(x);
		if (row < 0 || x < labelWidth())
			return null;
		for (const series of model.rows[row].series) {
			const segment = segmentAt(model, series, ns);
			if (ns >= series.start && ns < series.end && segment < series.last && model.start[segment] <= ns)
				return {row, series, segment, ns};
		}
		return {row, ns};
	}

	attachPointer();
	box.addEventListener('scroll', redraw);
	new ResizeObserver(redraw).observe(box);

	function attachPointer() {
		const pointers = new Map();
		let drag = null, pinch = 0;

		canvas.addEventListener('pointerdown', (event) => {
			pointers.set(event.pointerId, event.clientX);
			canvas.setPointerCapture(event.pointerId);
			const x = event.clientX - canvas.getBoundingClientRect().left;
			const moves = event.shiftKey || event.button === 1 || event.pointerType === 'touch';
			drag = {x, at: timeAt(x), moves, far: false, from: state.from, to: state.to};
			event.preventDefault();
			box.classList.add('pointed');
			box.focus({preventScroll: true});
		});
		canvas.addEventListener('pointermove', (event) => {
			const x = event.clientX - canvas.getBoundingClientRect().left;
			if (pointers.has(event.pointerId))
				pointers.set(event.pointerId, event.clientX);
			if (pointers.size === 2) {
				const [one, other] = [...pointers.values()], distance = Math.max(10, Math.abs(one - other));
				if (pinch)
					zoom(pinch / distance, timeAt((one + other) / 2 - canvas.getBoundingClientRect().left));
				pinch = distance;
				drag = null;
			} else if (drag && (drag.far || Math.abs(x - drag.x) > 4)) {
				drag.far = true;
				if (drag.moves) {
					const step = (drag.x - x) / stripWidth() * (drag.to - drag.from);
					setRange(drag.from + step, drag.to + step);
				} else {
					const ends = [drag.at, timeAt(x)].map((ns) => Math.max(0, Math.min(ns, model.window_ns)));
					state.selection = [Math.min(...ends), Math.max(...ends)];
					redraw();
					changed('selection');
				}
			} else if (!drag) {
				state.showTip(event, under(event));
			}
		});
		const end = (event) => {
			pointers.delete(event.pointerId);
			pinch = 0;
			if (drag && !drag.far && event.type === 'pointerup') {
				if (state.selection) {
					state.selection = null;
					changed('selection');
				}
				state.showDetail(under(event));
				redraw();
			}
			drag = null;
		};
		canvas.addEventListener('pointerup', end);
		canvas.addEventListener('pointercancel', end);
		canvas.addEventListener('pointerleave', () => state.hideTip());
		box.addEventListener('wheel', (event) => {
			const x = event.clientX - canvas.getBoundingClientRect().left;
			if (event.ctrlKey || event.metaKey || event.altKey) {
				event.preventDefault();
				zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), timeAt(Math.max(x, labelWidth())));
			} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
				event.preventDefault();
				pan((event.deltaX || event.deltaY) / stripWidth());
			}
		}, {passive: false});
	}

	return {draw, redraw, setRange, zoom, pan, choose, scrollToRow, under};
}
