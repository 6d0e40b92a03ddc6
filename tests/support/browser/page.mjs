// SPDX-License-Identifier: GPL-2.0-or-later
// page.mjs - what a page does in a browser:
//
//     page.mjs PLAYWRIGHT CHROMIUM FILE|URL <STEPS
//
// Nothing is loaded but the file, or what the URL's server has. PLAYWRIGHT is the folder of playwright-core. STEPS is JSON: {"context": settings of Playwright for the page, "script":
// JavaScript that runs before the page's own, "steps": [{"wait": selector}, {"evaluate": expression}, {"click":
// selector}, {"press": key}, {"type": text}, {"drag": [selector, x, y, x, y]}, {"screenshot": file}, {"pdf": file}]}.
// It prints {"requests", "refused", "errors", "dialogs", "results", "cpu_s": CPU time of the page's main thread}.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [playwright, chromium, file] = process.argv.slice(2);
const wanted = JSON.parse(readFileSync(0, 'utf8'));
const { chromium: launcher } = createRequire(import.meta.url)(resolve(playwright));
const isServed = file.startsWith('http://');
const address = isServed ? file : pathToFileURL(resolve(file)).href;
const DEADLINE_MS = 60000;
const seen = { requests: [], refused: [], errors: [], dialogs: [], results: [] };

const steps = {
  wait: (page, selector) => page.waitForSelector(selector, { timeout: DEADLINE_MS, state: 'attached' }).then(() => null),
  evaluate: (page, expression) => page.evaluate(expression),
  click: (page, selector) => page.locator(selector).first().click(),
  press: (page, key) => page.keyboard.press(key),
  type: (page, text) => page.keyboard.type(text),
  screenshot: (page, path) => page.screenshot({ path }).then(() => null),
  pdf: (page, path) => page.pdf({ path, format: 'A4', printBackground: true }).then(() => null),
  async drag(page, [selector, x, y, toX, toY]) {
    const box = await page.locator(selector).first().boundingBox();
    await page.mouse.move(box.x + x, box.y + y);
    await page.mouse.down();
    await page.mouse.move(box.x + toX, box.y + toY, { steps: 4 });
    await page.mouse.up();
    return null;
  },
};

const browser = await launcher.launch({ executablePath: chromium, args: ['--no-sandbox'] });
try {
  const context = await browser.newContext(wanted.context || {});
  const page = await context.newPage();
  page.setDefaultTimeout(DEADLINE_MS);
  page.on('pageerror', (error) => seen.errors.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error')
      (/Content Security Policy/.test(message.text()) ? seen.refused : seen.errors).push(message.text());
  });
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  await context.route('**/*', (route) => {
    const url = route.request().url();
    if (url === address || (isServed && new URL(url).origin === new URL(address).origin))
      return route.continue();
    seen.requests.push(url);
    return route.abort();
  });
  const inspector = await context.newCDPSession(page);
  await inspector.send('Performance.enable', { timeDomain: 'threadTicks' });
  if (wanted.script)
    await page.addInitScript(wanted.script);
  await page.goto(address, { timeout: DEADLINE_MS });
  for (const step of wanted.steps || []) {
    const [name, argument] = Object.entries(step)[0];
    seen.results.push(await steps[name](page, argument));
  }
  const { metrics } = await inspector.send('Performance.getMetrics');
  seen.cpu_s = metrics.find((metric) => metric.name === 'TaskDuration').value;
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
