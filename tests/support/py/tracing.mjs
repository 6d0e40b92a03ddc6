// SPDX-License-Identifier: GPL-2.0-or-later
// tracing.mjs - what the viewer of chrome://tracing makes of a trace:
//
//     tracing.mjs CHROMIUM VIEWER TRACE SCREENSHOT
//
// starts a browser without a window, and prints what its model of the trace holds. The browser has
// that page no more (Chromium 156), so the page is made here around the viewer itself, which is
// Catapult's; VIEWER is the folder of trace_viewer_full.html and webcomponents.min.js.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [chromium, viewer, trace, screenshot] = process.argv.slice(2);
const DEADLINE_MS = 120000;

const PAGE = `<!DOCTYPE html>
<title>wallprof</title>
<style>html, body, #viewer { width: 100%; height: 100%; margin: 0; overflow: hidden; }</style>
<script src="webcomponents.min.js"></script>
<link rel="import" href="trace_viewer_full.html">
<body></body>`;
const FILES = new Map([
  ['/', [PAGE, 'text/html']],
  ['/trace', [readFileSync(trace), 'application/json']],
  ...['trace_viewer_full.html', 'webcomponents.min.js'].map((name) =>
    [`/${name}`, [readFileSync(join(viewer, name)), name.endsWith('js') ? 'text/javascript' : 'text/html']]),
]);

// In the page; what it returns must be plain data.
const READ = async () => {
  while (!window.tr?.ui?.timeline && !document.createElement('tr-ui-timeline-view').updateDocumentFavicon)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const text = await (await fetch('/trace')).text();
  const view = document.createElement('tr-ui-timeline-view');
  const container = document.createElement('track-view-container');
  container.id = 'track_view_container';
  view.track_view_container = container;
  Polymer.dom(view).appendChild(container);
  view.id = 'viewer';
  view.globalMode = true;
  Polymer.dom(document.body).appendChild(view);
  const model = new tr.Model();
  await new tr.importer.Import(model, new tr.importer.ImportOptions()).importTraces([text]);
  view.model = model;
  view.viewTitle = 'wallprof';
  const threads = model.getAllThreads().map((thread) => ({
    pid: thread.parent.pid,
    process: thread.parent.name,
    tid: thread.tid,
    name: thread.name,
    slices: thread.sliceGroup.slices.length,
    asyncs: thread.asyncSliceGroup.slices.length,
    samples: thread.samples.length,
  }));
  const counters = model.getAllProcesses().flatMap((process) => Object.keys(process.counters));
  await new Promise((resolve) => setTimeout(resolve, 2000)); // it draws
  return { threads, counters, flows: model.flowEvents.length,
    warnings: model.importWarnings.map((warning) => warning.message) };
};

function serve() {
  const server = createServer((request, response) => {
    const [body, type] = FILES.get(request.url) ?? [null, null];
    response.writeHead(body === null ? 404 : 200, type ? { 'Content-Type': type } : {});
    response.end(body ?? '');
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

// It says where it listens.
function address_of(browser) {
  return new Promise((resolve, reject) => {
    let said = '';
    browser.on('exit', () => reject(new Error(`the browser ended: ${said}`)));
    browser.stderr.on('data', (text) => {
      said += text;
      const found = said.match(/DevTools listening on (ws:\S+)/);
      if (found)
        resolve(found[1]);
    });
  });
}

// Returns the function that calls a method of the Chrome DevTools Protocol.
async function connect(address) {
  const socket = new WebSocket(address), waiting = new Map();
  let calls = 0;
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error('the browser does not answer'));
  });
  socket.onmessage = ({ data }) => {
    const { id, result, error } = JSON.parse(data);
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error)
      asked?.reject(new Error(error.message));
    else
      asked?.resolve(result);
  };
  return (method, params, sessionId) => new Promise((resolve, reject) => {
    waiting.set(++calls, { resolve, reject });
    socket.send(JSON.stringify({ id: calls, method, params, sessionId }));
  });
}

async function look(call, url) {
  const { targetId } = await call('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await call('Target.attachToTarget', { targetId, flatten: true });
  await call('Page.enable', {}, sessionId);
  await call('Page.navigate', { url }, sessionId); // returns when the page's own context is there
  const { result, exceptionDetails } = await call('Runtime.evaluate',
    { expression: `new Promise((done) => document.readyState === 'complete' ? done()
        : addEventListener('load', done)).then(${READ})`, awaitPromise: true, returnByValue: true },
    sessionId);
  if (exceptionDetails)
    throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
  const { data } = await call('Page.captureScreenshot', { format: 'png' }, sessionId);
  writeFileSync(screenshot, Buffer.from(data, 'base64'));
  return result.value;
}

const folder = mkdtempSync(join(tmpdir(), 'tracing-'));
const server = await serve();
const browser = spawn(chromium, ['--headless=new', '--no-sandbox', '--disable-gpu',
  '--disable-dev-shm-usage', '--no-first-run', '--window-size=1600,1000',
  `--user-data-dir=${folder}`, '--remote-debugging-port=0', 'about:blank'],
  { stdio: ['ignore', 'ignore', 'pipe'] });
const ended = new Promise((resolve) => browser.on('exit', resolve));
const late = setTimeout(() => browser.kill('SIGKILL'), DEADLINE_MS);
try {
  const call = await connect(await address_of(browser));
  const seen = await Promise.race([look(call, `http://127.0.0.1:${server.address().port}/`),
    ended.then(() => { throw new Error('the browser took too long'); })]);
  console.log(JSON.stringify(seen));
} finally {
  clearTimeout(late);
  browser.kill();
  await ended;
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
process.exit(0);
