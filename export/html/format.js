// SPDX-License-Identifier: GPL-2.0-or-later
// format.js - numbers for people, and elements. Text goes into the document as text, never as markup.

function duration(ns) {
	const size = Math.abs(ns);
	if (size >= 1e9)
		return `${(ns / 1e9).toFixed(size >= 100e9 ? 1 : 3)} s`;
	if (size >= 1e6)
		return `${(ns / 1e6).toFixed(size >= 100e6 ? 1 : size >= 10e6 ? 2 : 3)} ms`;
	if (size >= 1e3)
		return `${(ns / 1e3).toFixed(size >= 10e3 ? 1 : 2)} µs`;
	return `${Math.round(ns)} ns`;
}

function percent(part, all) {
	return all > 0 ? `${(100 * part / all).toFixed(1)} %` : '';
}

/** Returns a moment so that two that are `step` ns apart differ. */
function moment(ns, step) {
	const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9))));
	return `${(ns / 1e9).toFixed(digits)} s`;
}

function bytesText(bytes) {
	const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
	let unit = 0;
	for (; bytes >= 1024 && unit < units.length - 1; unit++)
		bytes /= 1024;
	return `${unit && bytes < 100 ? bytes.toFixed(1) : Math.round(bytes)} ${units[unit]}`;
}

/** Names come from recorded programs: what would change the direction or the lines of text is shown as U+FFFD. */
function printable(text) {
	return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

/** Makes an element with properties, and children that are elements or texts. */
function make(tag, properties, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties || {})) {
		if (name.includes('-') || name === 'role' || name === 'scope' || name === 'for')
			element.setAttribute(name, value);
		else
			element[name] = value;
	}
	for (const child of children)
		if (child !== null && child !== undefined)
			element.append(child instanceof Node ? child : printable(child));
	return element;
}

const byId = (id) => document.getElementById(id);

/** Shows a list of [term, text] pairs. */
function definitions(pairs) {
	const list = make('dl');
	for (const [term, text] of pairs)
		if (text !== '' && text !== undefined && text !== null)
			list.append(make('dt', {}, term), make('dd', {}, text));
	return list;
}

/** The colours of the page in the mode that is chosen: as the style has them, and as pixels. */
function readColours(count) {
	const style = getComputedStyle(document.documentElement);
	const value = (name) => style.getPropertyValue(name).trim();
	const colours = {text: value('--text'), dim: value('--dim'), line: value('--line'), back: value('--back'),
		strip: value('--strip'), accent: value('--accent'), css: [], pixel: [], faint: []};
	const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
	const pixel = ([red, green, blue]) => (0xff000000 | blue << 16 | green << 8 | red) >>> 0;
	const back = channels(colours.strip);
	for (let i = 0; i < count; i++) {
		const css = value(`--c${i}`) || '#999999';
		const own = channels(css);
		colours.css.push(css);
		colours.pixel.push(pixel(own));
		colours.faint.push(pixel(own.map((part, k) => Math.round(part * 0.16 + back[k] * 0.84))));
	}
	colours.backPixel = pixel(back);
	return colours;
}

/** Returns whether black text is easier to read on this colour than white text. */
function isLight(css) {
	const [red, green, blue] = [1, 3, 5].map((at) => parseInt(css.slice(at, at + 2), 16));
	return 0.3 * red + 0.59 * green + 0.11 * blue > 130;
}
