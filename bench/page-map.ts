/** The map with 10,000 footprints: time until it is drawn, and frames while it moves. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { median, quantile, renderTable, target } from './figures.ts';
import { type PagePart, type VisitOptions, viewport } from './page.ts';

/** Intervals of animation frames by motion, ms; the empty page is the baseline. */
type Frames = Readonly<Record<'empty page' | 'pan' | 'zoom', readonly number[]>>;

/** Opens the map several times with a cold cache, and moves it with the mouse. */
export async function measureMap(options: VisitOptions & { motionMs: number }): Promise<PagePart> {
  const rounds: Awaited<ReturnType<typeof measureRound>>[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    options.show(`map, round ${round} of ${options.rounds}`);
    rounds.push(await measureRound(options.browser, options.receiver.url, options.motionMs));
  }
  const at = (share: number) => (motion: keyof Frames) =>
    median(rounds.map(({ frames }) => quantile(frames[motion], share)));
  const drawnMs = median(rounds.map(({ draw }) => draw.drawnMs));
  const footprints = rounds[0]?.draw.footprints ?? 0;
  return {
    figures: { rounds },
    faults: [],
    text: [
      renderTable(['empty page', 'pan', 'zoom'] as const, [
        ['animation frames', (motion) => motion],
        ['p50 ms', at(0.5), 1],
        ['p95', at(0.95), 1],
        ['p99', at(0.99), 1],
      ]),
    ],
    targets: [
      target(`${footprints} footprints drawn, ms`, drawnMs, { max: 150 }),
      target('p95 of a frame, pan, ms', at(0.95)('pan'), { max: 17 }),
      target('p95 of a frame, zoom, ms', at(0.95)('zoom'), { max: 17 }),
      target('p95 of a frame, empty page, ms (this machine)', at(0.95)('empty page'), { max: 17 }),
    ],
  };
}

async function measureRound(browser: Browser, url: string, motionMs: number) {
  const context = await browser.newContext({ viewport });
  try {
    const page = await context.newPage();
    await page.addInitScript({ content: watchScript });
    await page.goto(`${url}/healthz`);
    const idle = await framesDuring(page, () => pan(page, motionMs));
    await page.goto(`${url}/map`);
    const draw = await untilDrawn(page);
    const panned = await framesDuring(page, () => pan(page, motionMs));
    const zoomed = await framesDuring(page, () => zoom(page, motionMs));
    return { draw, frames: { 'empty page': idle, pan: panned, zoom: zoomed } satisfies Frames };
  } finally {
    await context.close();
  }
}

/**
 * Runs in the page before its scripts. A layer with more footprints that is copied to the canvas of the map is
 * complete.
 */
const watchScript = `globalThis.watched = { drawnMs: 0, copiedMs: 0, frames: [], isCounting: false };
{
  const { drawImage } = CanvasRenderingContext2D.prototype;
  let newest;
  let most = 0;
  CanvasRenderingContext2D.prototype.drawImage = function (...args) {
    drawImage.apply(this, args);
    watched.copiedMs = performance.now();
    if (args[0] === newest) return;
    newest = args[0];
    // A larger layer with the same footprints may follow.
    const footprints = Number(this.canvas.dataset.footprints ?? 0);
    if (footprints <= most) return;
    most = footprints;
    watched.drawnMs = watched.copiedMs;
  };
}`;

/**
 * Waits until the map shows all footprints and rests. Returns the time from the end of the answer to the first frame
 * with all footprints.
 */
async function untilDrawn(page: Page): Promise<{ footprints: number; drawnMs: number }> {
  await page.locator('.map-readout', { hasText: 'footprints' }).waitFor({ timeout: 60_000 });
  while (!(await page.evaluate('performance.now() - watched.copiedMs > 500'))) await delay(50);
  return page.evaluate(`(() => {
    const answers = performance.getEntriesByType('resource')
      .filter(({ name }) => name.includes('/api/footprints') && !name.includes('after='));
    return {
      footprints: Number(document.querySelector('.map-readout').textContent.replaceAll(/\\D/g, '')),
      drawnMs: watched.drawnMs - Math.max(...answers.map(({ responseEnd }) => responseEnd)),
    };
  })()`);
}

/** Returns the intervals of the animation frames of a page while `move` runs, ms. */
async function framesDuring(page: Page, move: () => Promise<void>): Promise<number[]> {
  await page.evaluate(`{
    watched.frames = [];
    watched.isCounting = true;
    const note = (atMs) => {
      watched.frames.push(atMs);
      if (watched.isCounting) requestAnimationFrame(note);
    };
    requestAnimationFrame(note);
  }`);
  await move();
  const times = await page.evaluate<number[]>('(watched.isCounting = false, watched.frames)');
  return times.slice(1).map((atMs, i) => atMs - (times[i] ?? atMs));
}

/** Drags back and forth, like a hand: the browser takes one position per frame. */
async function pan(page: Page, durationMs: number): Promise<void> {
  const [x, y] = [viewport.width / 2, viewport.height / 2];
  await page.mouse.move(x, y);
  await page.mouse.down();
  const startMs = performance.now();
  for (let atMs = 0; atMs < durationMs; atMs = performance.now() - startMs) {
    const angle = atMs / 400;
    await page.mouse.move(x + 250 * Math.sin(angle), y + 120 * Math.sin(angle / 2));
  }
  await page.mouse.up();
}

/** Zooms in and out with the wheel. */
async function zoom(page: Page, durationMs: number): Promise<void> {
  await page.mouse.move(viewport.width / 2 + 40, viewport.height / 2);
  const startMs = performance.now();
  for (let atMs = 0; atMs < durationMs; atMs = performance.now() - startMs) {
    await page.mouse.wheel(0, atMs % 2_000 < 1_000 ? -60 : 60);
    await delay(12);
  }
}
