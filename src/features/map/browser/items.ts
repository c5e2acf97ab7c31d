/** Footprints on the map: all of the period, then new ones as they arrive. One request runs at a time. */

import { addressOf, openStream, type StreamState } from '../../../core/page/browser/stream.ts';
import { printable } from '../../../core/page/browser/texts.ts';
import type { Footprint } from './colours.ts';
import { type Outline, type Projection, ringsOf } from './projection.ts';
import { type Shape, shapeOf } from './shape.ts';

/** A product on the map, with the index of its colour. */
export type Item = Footprint & Shape & { name: string; colour: number };

interface FootprintPage {
  footprints: (Footprint & { geometry: Outline })[];
  next: string | null;
  /** Position up to which products are listed. */
  indexedPosition: number;
}

export interface ItemOptions {
  /** Address of the footprints, without the period. */
  path: string;
  /** Start of the period: a time, or a duration before now. */
  since: string | number;
  until: string | null;
  /** Maximum number of footprints: the newest ones. */
  itemsMax: number;
  projection: Projection;
  /** Called with all items, the newest last, and the number of notifications that are not indexed yet. */
  onChange(items: readonly Item[], lag: number): void;
  /** Called with the reason when the footprints cannot be loaded; they are requested again. */
  onProblem(reason: string): void;
  onState(state: StreamState): void;
}

/** Shortest time between two requests. */
const pollMs = 1_000;
/** Time between two attempts while the receiver does not answer. */
const retryMs = 5_000;
/** Time after which all footprints are loaded again: products change, and leave the period. */
const reloadMs = 300_000;
const answerMsMax = 35_000;
/** Items converted in one task: more would delay keys and clicks. */
const itemsPerTask = 2_500;

const delay = (ms = 0) => new Promise((done) => setTimeout(done, ms));

/** Loads the footprints, and follows arrivals unless the period has an end. */
export async function followItems(options: ItemOptions): Promise<void> {
  const { path, since, until, itemsMax, onChange, onProblem, onState } = options;
  let items: readonly Item[] = [];
  /** Position up to which the items are complete. */
  let completePosition = 0;
  let loadedAtMs = Number.NEGATIVE_INFINITY;
  let isDue = true;
  if (until === null) {
    openStream({
      onPositions: ({ lastPosition, indexedPosition }) => {
        isDue ||= indexedPosition !== completePosition;
        // The log was replaced by an older one.
        if (lastPosition < completePosition) loadedAtMs = Number.NEGATIVE_INFINITY;
      },
      onState: (state) => {
        onState(state);
        isDue ||= state === 'open';
      },
    });
  }
  /** Reads all pages. `merged` returns the items with those that were found so far; the same ones without new ones. */
  const read = async (query: string, merged: (found: readonly Item[]) => readonly Item[]) => {
    const found: Item[] = [];
    let first: number | undefined;
    let isCut = false;
    for (let url: string | null = `${path}&${query}`; url !== null && found.length < itemsMax; ) {
      const { page, lag, items: more } = await load(url, options);
      // Products may be indexed while later pages are read.
      first ??= page.indexedPosition;
      found.push(...more);
      const next = merged(found);
      if (next !== items) onChange(next, lag);
      items = next;
      url = page.next;
      isCut = url !== null;
    }
    completePosition = first ?? 0;
    return isCut;
  };
  const readAll = async () => {
    const from = typeof since === 'string' ? since : new Date(Date.now() - since).toISOString();
    const period = until === null ? `since=${from}` : `since=${from}&until=${until}`;
    // Before the pages are read: a gap meanwhile loads them again.
    loadedAtMs = performance.now();
    await read(`${period}&limit=${itemsMax}`, (found) => found.slice(0, itemsMax).toReversed());
  };
  const readNew = async () => {
    const known = items;
    const newest = known.at(-1)?.position ?? 0;
    const isCut = await read(`after=${completePosition}&limit=${itemsMax}`, (found) => {
      const fresh = found.filter(({ position }) => position > newest);
      return fresh.length === 0 ? known : [...known, ...fresh].slice(-itemsMax);
    });
    // More than the map shows are new: the newest ones are not read yet.
    if (isCut) [loadedAtMs, isDue] = [Number.NEGATIVE_INFINITY, true];
  };
  for (;;) {
    while (!isDue || document.hidden) await delay(100);
    isDue = false;
    try {
      await (performance.now() - loadedAtMs > reloadMs ? readAll() : readNew());
      await delay(pollMs);
    } catch (error) {
      isDue = true;
      onProblem(error instanceof Error ? error.message : String(error));
      await delay(retryMs);
    }
  }
}

/** Rejects with the text of the problem. Returns items in map coordinates, without a colour yet. */
async function load(
  url: string,
  { projection }: ItemOptions,
): Promise<{ page: FootprintPage; lag: number; items: Item[] }> {
  // The next page has the configured address of the listener, which may differ from that of this page.
  const address = addressOf(`/api/footprints${new URL(url, location.href).search}`);
  const answer = await fetch(address, { signal: AbortSignal.timeout(answerMsMax) }).catch(() => {
    throw new Error('The receiver does not answer. The map reconnects automatically.');
  });
  const page = await answer.json();
  if (!answer.ok) throw new Error(String(page.detail ?? answer.statusText));
  const items: Item[] = [];
  for (const { geometry, ...footprint } of (page as FootprintPage).footprints) {
    if (items.length % itemsPerTask === itemsPerTask - 1) await delay();
    const name = printable(footprint.productName ?? footprint.productId);
    const shape = shapeOf(ringsOf(geometry), projection);
    items.push({ ...footprint, name, ...shape, colour: 0 });
  }
  return { page, items, lag: Number(answer.headers.get('earshot-index-lag') ?? 0) };
}
