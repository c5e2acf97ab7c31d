/** The map with 10,000 footprints: time until it is drawn, and frames while it moves. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { alignTable, figure, median, quantile, target } from './figures.ts';
import type { MeasuredPart } from './intake-parts.ts';
import type { LargeReceiver } from './page-data.ts';
import { type DrawFigures, framesDuring, isMapAtRest, lastDrawing, watch } from './page-watch.ts';

const viewport = { width: 1280, height: 900 };

/** Intervals of animation frames, ms. */
type Frames = readonly number[];

const motions = ['empty page', 'pan', 'zoom'] as const;
type Motion = (typeof motions)[number];

interface MapRound {
  readonly draw: DrawFigures;
  readonly frames: Readonly<Record<Motion, Frames>>;
}

export interface MapOptions {
  readonly browser: Browser;
  readonly receiver: LargeReceiver;
  readonly rounds: number;
  /** Duration of each motion. */
  readonly motionMs: number;
  readonly show: (text: string) => void;
}

/** Opens the map several times with a cold cache, and moves it with the mouse. */
export async function measureMap(options: MapOptions): Promise<Omit<MeasuredPart, 'runs'>> {
  const rounds: MapRound[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    options.show(`map, round ${round} of ${options.rounds}`);
    rounds.push(await measureRound(options));
  }
  const p95 = (motion: Motion) =>
    median(rounds.map(({ frames }) => quantile(frames[motion], 0.95)));
  const drawn = (pick: (draw: DrawFigures) => number) =>
    median(rounds.map(({ draw }) => pick(draw)));
  const footprints = rounds[0]?.draw.footprints ?? 0;
  const rows = motions.map((motion) => [
    motion,
    ...[0.5, 0.95, 0.99].map((share) =>
      figure(median(rounds.map(({ frames }) => quantile(frames[motion], share))), 1),
    ),
    figure(median(rounds.map(({ frames }) => 1_000 / mean(frames[motion]))), 1),
  ]);
  return {
    figures: { rounds },
    faults: [],
    text: [
      `Map with ${footprints} footprints, ${figure((rounds[0]?.draw.answerBytes ?? 0) / 1e6, 1)} MB of JSON: drawn ${figure(drawn((one) => one.drawnMs))} ms after the answer, on the screen after ${figure(drawn((one) => one.shownMs))} ms`,
      alignTable([['Animation frames', 'p50 ms', 'p95', 'p99', 'frames/s'], ...rows]),
    ],
    targets: [
      target(
        `${footprints} footprints drawn, ms`,
        drawn((one) => one.drawnMs),
        { max: 150 },
      ),
      target('p95 of a frame, pan, ms', p95('pan'), { max: 17 }),
      target('p95 of a frame, zoom, ms', p95('zoom'), { max: 17 }),
      target('p95 of a frame, empty page, ms (this machine)', p95('empty page'), { max: 17 }),
    ],
  };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

async function measureRound({ browser, receiver, motionMs }: MapOptions): Promise<MapRound> {
  const context = await browser.newContext({ viewport });
  try {
    const page = await context.newPage();
    await watch(page);
    await page.goto(`${receiver.url}/healthz`);
    const idle = await framesDuring(page, () => pan(page, motionMs));
    await page.goto(`${receiver.url}/map`);
    const draw = await untilDrawn(page);
    const panned = await framesDuring(page, () => pan(page, motionMs));
    const zoomed = await framesDuring(page, () => zoom(page, motionMs));
    return { draw, frames: { 'empty page': idle, pan: panned, zoom: zoomed } };
  } finally {
    await context.close();
  }
}

/** Waits until the map shows all footprints and rests. */
async function untilDrawn(page: Page): Promise<DrawFigures> {
  await page.locator('.map-readout', { hasText: 'footprints' }).waitFor({ timeout: 60_000 });
  while (!(await isMapAtRest(page))) await delay(50);
  return lastDrawing(page);
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
