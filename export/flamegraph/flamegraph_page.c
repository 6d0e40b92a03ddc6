/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "flamegraph_page.h"

/* They are like those of the Firefox Profiler's tracks, but light: names are written on them. */
static const char *const colours[CATEGORY_COUNT] = {
	[CATEGORY_OTHER] = "#ececec",	   [CATEGORY_IDLE] = "#e4e7ea",
	[CATEGORY_USER] = "#ffd94f",	   [CATEGORY_KERNEL] = "#ffa94d",
	[CATEGORY_RECORDING] = "#b7e38d",  [CATEGORY_DISK] = "#f4796b",
	[CATEGORY_FAULT] = "#f08be0",	   [CATEGORY_LOCK] = "#b995f0",
	[CATEGORY_THREAD] = "#9bd5f5",	   [CATEGORY_NETWORK] = "#7ca7f7",
	[CATEGORY_PIPE] = "#7fcb8f",	   [CATEGORY_RUNNABLE] = "#ffb3b3",
	[CATEGORY_SLEEP] = "#b4bac0",	   [CATEGORY_JOBS] = "#d3d8dc",
	[CATEGORY_OTHER_WAIT] = "#cfae8d", [CATEGORY_UNKNOWN] = "#dcdcdc",
};

const char *flamegraph_colour(enum category category)
{
	return colours[category];
}

const char flamegraph_style[] = "text{font:11px monospace;fill:#111}"
				".title{font:bold 15px sans-serif}"
				".note{font:12px sans-serif}"
				".button{cursor:pointer;fill:#0645ad;visibility:hidden}"
				".f{cursor:pointer}"
				".f text{pointer-events:none}"
				".f:hover rect{stroke:#000;stroke-width:.7}"
				".f.above rect{opacity:.5}"
				".f.found rect{fill:#e33cff}";

/*
 * The frames' first places are those in the file. Names are the titles up to their last " (". What
 * is matched counts once if a matching frame is on another one.
 */
const char flamegraph_script[] =
	"(function () {\n"
	"'use strict';\n"
	"const svg = document.documentElement, letter = 6.7, margin = 10, width = 1180;\n"
	"const details = document.getElementById('details');\n"
	"const matched = document.getElementById('matched');\n"
	"const buttons = {};\n"
	"for (const id of ['reset', 'search'])\n"
	"  buttons[id] = document.getElementById(id);\n"
	"const frames = Array.from(document.querySelectorAll('.f'), g => {\n"
	"  const rect = g.querySelector('rect'), title = g.querySelector('title').textContent;\n"
	"  return {g, rect, text: g.querySelector('text'), title,\n"
	"          name: title.slice(0, title.lastIndexOf(' (')),\n"
	"          x: +rect.getAttribute('x'), w: +rect.getAttribute('width'),\n"
	"          y: +rect.getAttribute('y')};\n"
	"});\n"
	"let zoomed = null, pattern = null;\n"
	"function show(button, on) { button.style.visibility = on ? 'visible' : 'hidden'; }\n"
	"function place(frame, x, w) {\n"
	"  const letters = Math.floor((w - 6) / letter), name = frame.name;\n"
	"  frame.g.style.display = '';\n"
	"  frame.rect.setAttribute('x', x);\n"
	"  frame.rect.setAttribute('width', w);\n"
	"  frame.text.setAttribute('x', x + 3);\n"
	"  frame.text.textContent = letters < 3 ? '' :\n"
	"    name.length <= letters ? name : name.slice(0, letters - 2) + '..';\n"
	"}\n"
	"function zoom(to) {\n"
	"  const factor = width / to.w, slack = 0.002;\n"
	"  zoomed = to;\n"
	"  for (const frame of frames) {\n"
	"    const end = frame.x + frame.w, below = frame.y > to.y;\n"
	"    const around = frame.x <= to.x + slack && end >= to.x + to.w - slack;\n"
	"    const inside = frame.x >= to.x - slack && end <= to.x + to.w + slack;\n"
	"    frame.g.classList.toggle('above', below && around);\n"
	"    if (below && around)\n"
	"      place(frame, margin, width);\n"
	"    else if (!below && inside)\n"
	"      place(frame, margin + (frame.x - to.x) * factor, frame.w * factor);\n"
	"    else\n"
	"      frame.g.style.display = 'none';\n"
	"  }\n"
	"  show(buttons.reset, to.w < width - slack);\n"
	"  count();\n"
	"}\n"
	"function reset() {\n"
	"  zoom({x: margin, w: width, y: Infinity});\n"
	"  zoomed = null;\n"
	"}\n"
	"function count() {\n"
	"  const found = frames.filter(f => f.g.classList.contains('found') &&\n"
	"    f.g.style.display !== 'none' && !f.g.classList.contains('above'));\n"
	"  let sum = 0, end = -1;\n"
	"  if (!pattern) {\n"
	"    matched.textContent = '';\n"
	"    return;\n"
	"  }\n"
	"  found.sort((a, b) => a.x - b.x || b.w - a.w);\n"
	"  for (const frame of found)\n"
	"    if (frame.x >= end - 0.002) {\n"
	"      sum += frame.w;\n"
	"      end = frame.x + frame.w;\n"
	"    }\n"
	"  const part = 100 * sum / (zoomed ? zoomed.w : width);\n"
	"  matched.textContent = 'matched: ' + part.toFixed(1) + ' %';\n"
	"}\n"
	"function search(words) {\n"
	"  try {\n"
	"    pattern = words ? new RegExp(words) : null;\n"
	"  } catch (error) {\n"
	"    details.textContent = error.message;\n"
	"    return;\n"
	"  }\n"
	"  for (const frame of frames)\n"
	"    frame.g.classList.toggle('found', pattern !== null && pattern.test(frame.name));\n"
	"  buttons.search.textContent = pattern ? 'Reset search' : 'Search';\n"
	"  count();\n"
	"}\n"
	"function ask() {\n"
	"  const words = pattern ? '' : prompt('Search for names (a regular expression):', '');\n"
	"  if (words !== null)\n"
	"    search(words);\n"
	"}\n"
	"for (const frame of frames) {\n"
	"  frame.g.addEventListener('click', () => zoom(frame));\n"
	"  frame.g.addEventListener('mouseover', () => { details.textContent = frame.title; });\n"
	"  frame.g.addEventListener('mouseout', () => { details.textContent = ''; });\n"
	"}\n"
	"buttons.reset.addEventListener('click', reset);\n"
	"buttons.search.addEventListener('click', ask);\n"
	"show(buttons.search, true);\n"
	"window.addEventListener('keydown', event => {\n"
	"  if ((event.ctrlKey && event.key === 'f') || event.key === 'F3') {\n"
	"    event.preventDefault();\n"
	"    search('');\n"
	"    ask();\n"
	"  } else if (event.key === 'Escape') {\n"
	"    reset();\n"
	"    search('');\n"
	"  }\n"
	"});\n"
	"svg.flamegraph = {frames, zoom, reset, search};\n"
	"})();\n";
