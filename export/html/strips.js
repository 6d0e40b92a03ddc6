// SPDX-License-Identifier: GPL-2.0-or-later
// strips.js - paints rows of states. Each column of pixels has the shares of the states in its time, so that nothing
// is lost by zooming out: all segments in view are added up for each picture, which a browser does in milliseconds.

// From the bottom: what ran, what waited, what had nothing to do.
const STACKED = [2, 3, 4, 11, 5, 6, 7, 8, 9, 10, 14, 12, 15, 0, 13, 1];

/** Adds up, per column and category, the time of the segments of one series; marked ones apart. */
function addColumns(model, series, view, sums, marks) {
	const width = view.columns, scale = width / (view.to - view.from), from = view.from, kinds = STACKED.length;
	const start = model.start, stack = model.stack, category = model.category, last = series.last;
	for (let i = segmentAt(model, series, from); i < last; i++) {
		let begin = (start[i] - from) * scale;
		let end = ((i + 1 < last ? start[i + 1] : series.end) - from) * scale;
		if (begin >= width)
			break;
		if (end <= 0 || end <= begin)
			continue;
		if (begin < 0)
			begin = 0;
		if (end > width)
			end = width;
		const kind = category[stack[i]] + (marks && marks[i] ? kinds : 0);
		const first = begin | 0, behind = Math.min(end | 0, width - 1);
		if (first === behind) {
			sums[first * 2 * kinds + kind] += end - begin;
			continue;
		}
		sums[first * 2 * kinds + kind] += first + 1 - begin;
		for (let column = first + 1; column < behind; column++)
			sums[column * 2 * kinds + kind] += 1;
		sums[behind * 2 * kinds + kind] += end - behind;
	}
}

/** Paints one column of pixels: the shares from the bottom, in proportion to the part of it that is known. */
function paintColumn(pixels, stride, x, y, height, sums, at, colours, marked) {
	const kinds = STACKED.length;
	let all = 0;
	for (let i = 0; i < 2 * kinds; i++)
		all += sums[at + i];
	if (all <= 0)
		return;
	let filled = 0, done = 0;
	for (let pass = 1; pass >= 0; pass--) {
		for (let k = 0; k < kinds; k++) {
			const category = STACKED[k], part = sums[at + category + pass * kinds];
			if (part <= 0)
				continue;
			filled += part;
			const until = Math.round(filled / all * height);
			const pixel = marked && !pass ? colours.faint[category] : colours.pixel[category];
			for (let line = done; line < until; line++)
				pixels[(y + height - 1 - line) * stride + x] = pixel;
			done = until;
		}
	}
}

/** Paints a row into the pixels of the whole picture. */
function paintRow(model, row, view, picture, y, height, colours, marks) {
	const sums = picture.sums.fill(0), kinds = STACKED.length;
	for (const series of row.series)
		if (series.end > view.from && series.start < view.to)
			addColumns(model, series, view, sums, marks);
	for (let x = 0; x < view.columns; x++)
		paintColumn(picture.pixels, picture.width, x + picture.left, y, height, sums, x * 2 * kinds, colours, marks !== null);
}

/** Writes names into segments that are wide enough; returns how many texts there were. */
function labelRow(model, row, view, context, left, y, height, colours, ratio) {
	const scale = view.columns / (view.to - view.from), least = 46 * ratio;
	let texts = 0;
	for (const series of row.series) {
		for (let i = segmentAt(model, series, view.from); i < series.last && texts < 60; i++) {
			const end = i + 1 < series.last ? model.start[i + 1] : series.end;
			const begin = Math.max(0, (model.start[i] - view.from) * scale);
			const width = Math.min(view.columns, (end - view.from) * scale) - begin;
			if (model.start[i] >= view.to)
				break;
			if (width < least)
				continue;
			const css = colours.css[model.category[model.stack[i]]];
			context.fillStyle = isLight(css) ? '#000' : '#fff';
			const most = Math.floor(width / (6.3 * ratio));
			const name = printable(leafName(model, model.stack[i]));
			context.fillText(name.length > most ? `${name.slice(0, most - 1)}…` : name, left + begin + 4 * ratio,
				y + height / 2);
			texts++;
		}
	}
	return texts;
}

/** Returns moments at round times, at most so many in the range. */
function roundTimes(from, to, most) {
	const rough = Math.max(1, (to - from) / most), power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
	const times = [];
	for (let k = Math.ceil(from / step); k * step <= to; k++)
		times.push(k * step);
	return {step, times};
}
