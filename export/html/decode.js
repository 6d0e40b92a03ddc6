// SPDX-License-Identifier: GPL-2.0-or-later
// decode.js - from the characters in the file to numbers (html_parts.h has the columns).

/** Returns the bytes that base64 of gzip stands for. */
async function unpack(text) {
	const characters = atob(text);
	const packed = new Uint8Array(characters.length);
	for (let i = 0; i < packed.length; i++)
		packed[i] = characters.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Returns the numbers of a column: each has 7 bits in a byte, the lowest first. */
function readColumn(bytes, size, Type) {
	const [at, length] = size;
	let count = 0;
	for (let i = at; i < at + length; i++)
		count += bytes[i] < 128 ? 1 : 0;
	const numbers = new Type(count);
	let value = 0, scale = 1, k = 0;
	for (let i = at; i < at + length; i++) {
		const byte = bytes[i];
		if (byte < 128) {
			numbers[k++] = value + byte * scale;
			value = 0;
			scale = 1;
		} else {
			value += (byte - 128) * scale;
			scale *= 128;
		}
	}
	return numbers;
}

/** Zigzag: 0, 1, 2, 3 are 0, -1, 1, -2. */
function signed(value) {
	return value % 2 ? -(value + 1) / 2 : value / 2;
}

/** Returns the JSON of the data, with its columns as arrays. */
function readData(bytes) {
	const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
	const data = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
	const rest = bytes.subarray(4 + length);
	const wide = new Set(['segmentStart', 'segmentWeight', 'pathStart', 'pathLength', 'waitStart', 'waitLength']);
	for (const [name, place] of Object.entries(data.columns))
		data.columns[name] = readColumn(rest, place, wide.has(name) ? Float64Array : Uint32Array);
	return data;
}
