/** Observes a page from inside: pictures of the map, animation frames, and long tasks. */
import type { Page } from 'playwright-core';

/**
 * Runs in the page before its scripts. A layer with more footprints that is copied to the canvas of the map is complete;
 * two frames later, the browser has shown it.
 */
const watchScript = `globalThis.watched = {
  drawnMs: 0, copiedMs: 0, shownMs: 0, frames: [], isCounting: false, tasks: [],
};
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
    requestAnimationFrame(() => requestAnimationFrame(() => {
      watched.shownMs = performance.now();
    }));
  };
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) {
      watched.tasks.push({ atMs: performance.timeOrigin + startTime, tookMs: duration });
    }
  }).observe({ type: 'longtask' });
}`;

/** A task of more than 50 ms. */
export interface LongTask {
  /** Start, ms since 1970. */
  readonly atMs: number;
  readonly tookMs: number;
}

export async function watch(page: Page): Promise<void> {
  await page.addInitScript({ content: watchScript });
}

export function longTasks(page: Page): Promise<LongTask[]> {
  return page.evaluate('watched.tasks');
}

/** Returns true when the map has not been drawn for some time. */
export function isMapAtRest(page: Page): Promise<boolean> {
  return page.evaluate('performance.now() - watched.copiedMs > 500');
}

export interface DrawFigures {
  readonly footprints: number;
  readonly answerBytes: number;
  /** From the end of the answer to the first frame with all footprints, copied to the canvas. */
  readonly drawnMs: number;
  /** The same, until the second frame after it begins: the browser has finished the picture. */
  readonly shownMs: number;
}

/** Returns the figures of the last picture of a map at rest. */
export function lastDrawing(page: Page): Promise<DrawFigures> {
  return page.evaluate(`(() => {
    const answers = performance.getEntriesByType('resource')
      .filter(({ name }) => name.includes('/api/footprints') && !name.includes('after='));
    const endMs = Math.max(...answers.map(({ responseEnd }) => responseEnd));
    return {
      footprints: Number(document.querySelector('.map-readout').textContent.replaceAll(/\\D/g, '')),
      answerBytes: answers.reduce((sum, one) => sum + one.decodedBodySize, 0),
      drawnMs: watched.drawnMs - endMs,
      shownMs: watched.shownMs - endMs,
    };
  })()`);
}

/** Returns the intervals of the animation frames of a page while `move` runs, ms. */
export async function framesDuring(page: Page, move: () => Promise<void>): Promise<number[]> {
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
