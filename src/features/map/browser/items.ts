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
const pollMs = 500;
/** Time between two attempts while the receiver does not answer. */
const retryMs = 5_000;
/** Time after which all footprints are loaded again: products change, and leave the period. */
const reloadMs = 300_000;
const answerMsMax = 35_000;
/** Items converted in one task: more would delay keys and clicks. */
const itemsPerTask = 2_500;
/** Pages of new footprints after which all are loaded again. */
const newPagesMax = 10;

const delay = (ms = 0) => new Promise((done) => setTimeout(done, ms));

/** Loads the footprints, and follows arrivals unless the period has an end. */
export async function followItems(options: ItemOptions): Promise<void> {
  let requested = 'all' as 'all' | 'new' | null;
  let hasArrivals = false;
  const items = new Items(options);
  if (options.until === null) {
    openStream('/api/live?rows=0', '', {
      // After a gap, the log may have been replaced.
      onMessage: (name) => {
        hasArrivals = true;
        requested = name === 'gap' ? 'all' : (requested ?? 'new');
      },
      onState: (state) => {
        options.onState(state);
        if (state === 'open') requested ??= 'new';
      },
    });
  }
  for (;;) {
    const isOld = performance.now() - items.loadedAtMs > reloadMs;
    const work = hasArrivals && isOld ? 'all' : requested;
    if (work === null || document.hidden) {
      await delay(100);
      continue;
    }
    requested = null;
    if (work === 'all') hasArrivals = false;
    try {
      await (work === 'all' ? items.loadAll() : items.loadNew());
      await delay(pollMs);
    } catch (error) {
      options.onProblem(error instanceof Error ? error.message : String(error));
      requested = work;
      await delay(retryMs);
    }
  }
}

class Items {
  readonly #options: ItemOptions;
  #items: Item[] = [];
  /** Position up to which the items are complete. */
  #completePosition = 0;
  loadedAtMs = 0;

  constructor(options: ItemOptions) {
    this.#options = options;
  }

  async loadAll(): Promise<void> {
    const { path, itemsMax, since, until } = this.#options;
    const from = typeof since === 'string' ? since : new Date(Date.now() - since).toISOString();
    const period = until === null ? `since=${from}` : `since=${from}&until=${until}`;
    const found: Item[] = [];
    let first: number | null = null;
    for (let url: string | null = `${path}&${period}&limit=${itemsMax}`; url !== null; ) {
      const { page, lag, items } = await this.#load(url);
      // Products may be indexed while later pages are read.
      first ??= page.indexedPosition;
      found.push(...items);
      this.#show(found.slice(0, itemsMax).toReversed(), lag);
      url = found.length < itemsMax ? page.next : null;
    }
    this.#completePosition = first ?? 0;
    this.loadedAtMs = performance.now();
  }

  async loadNew(): Promise<void> {
    const { path, itemsMax } = this.#options;
    let url: string | null = `${path}&after=${this.#completePosition}&limit=1000`;
    for (let pages = 0; url !== null; pages += 1) {
      if (pages === newPagesMax) return this.loadAll();
      const { page, lag, items } = await this.#load(url);
      const newest = this.#items.at(-1)?.position ?? 0;
      const fresh = items.filter(({ position }) => position > newest);
      if (fresh.length > 0) this.#show([...this.#items, ...fresh].slice(-itemsMax), lag);
      url = page.next;
      if (url === null) this.#completePosition = page.indexedPosition;
    }
    return undefined;
  }

  #show(items: Item[], lag: number): void {
    this.#items = items;
    this.#options.onChange(items, lag);
  }

  /** Rejects with the text of the problem. Returns items in map coordinates, without a colour yet. */
  async #load(url: string): Promise<{ page: FootprintPage; lag: number; items: Item[] }> {
    // The next page has the configured address of the listener, which may differ from that of this page.
    const address = addressOf(`/api/footprints${new URL(url, location.href).search}`);
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMsMax) }).catch(() => {
      throw new Error('The receiver does not answer. The map reconnects automatically.');
    });
    const page = await answer.json();
    if (!answer.ok) throw new Error(String(page.detail ?? answer.statusText));
    const { projection } = this.#options;
    const items: Item[] = [];
    for (const { geometry, ...footprint } of (page as FootprintPage).footprints) {
      if (items.length % itemsPerTask === itemsPerTask - 1) await delay();
      const name = printable(footprint.productName ?? footprint.productId);
      const shape = shapeOf(ringsOf(geometry), projection);
      items.push({ ...footprint, name, ...shape, colour: 0 });
    }
    return { page, items, lag: Number(answer.headers.get('earshot-index-lag') ?? 0) };
  }
}
