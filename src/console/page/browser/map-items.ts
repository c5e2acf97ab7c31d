/** Footprints on the map: all of the period, then new ones as they arrive. One request runs at a time. */
import { type PaintedShape, shapeOf } from './map-canvas.ts';
import type { Footprint } from './map-colours.ts';
import { type Outline, type Projection, ringsOf } from './map-projection.ts';
import { addressOf, openStream, type StreamState } from './stream.ts';
import { printable } from './texts.ts';

/** A product on the map. */
export type Item = Footprint & PaintedShape & { name: string };

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

/** Loads the footprints, and follows arrivals unless the period has an end. */
export function followItems(options: ItemOptions): void {
  const loader = new Loader(options);
  setInterval(() => void loader.run(), 100);
  void loader.run();
  if (options.until !== null) return;
  openStream('/api/live?rows=0', '', {
    // After a gap, the log may have been replaced.
    onMessage: (name) => loader.request(name === 'gap' ? 'all' : 'new', true),
    onState: (state) => {
      options.onState(state);
      if (state === 'open') loader.request('new', false);
    },
  });
}

class Loader {
  readonly #options: ItemOptions;
  #items: Item[] = [];
  /** Position up to which the items are complete. */
  #completePosition = 0;
  #requested: 'all' | 'new' | null = 'all';
  #isBusy = false;
  #loadedAtMs = 0;
  #earliestAtMs = 0;
  #hasArrivals = false;

  constructor(options: ItemOptions) {
    this.#options = options;
  }

  request(what: 'all' | 'new', hasArrivals: boolean): void {
    if (this.#requested !== 'all') this.#requested = what;
    this.#hasArrivals ||= hasArrivals;
  }

  /** Does what was requested, unless it is too early, or the page is hidden. */
  async run(): Promise<void> {
    const now = performance.now();
    if (this.#hasArrivals && now - this.#loadedAtMs > reloadMs) this.#requested = 'all';
    const work = this.#requested;
    if (work === null || this.#isBusy || document.hidden || now < this.#earliestAtMs) return;
    [this.#isBusy, this.#requested] = [true, null];
    try {
      await (work === 'all' ? this.#loadAll() : this.#loadNew());
      this.#earliestAtMs = performance.now() + pollMs;
    } catch (error) {
      this.#options.onProblem(error instanceof Error ? error.message : String(error));
      this.request(work, false);
      this.#earliestAtMs = performance.now() + retryMs;
    } finally {
      this.#isBusy = false;
    }
  }

  async #loadAll(): Promise<void> {
    const { path, itemsMax } = this.#options;
    const found: Item[] = [];
    let first: number | null = null;
    this.#hasArrivals = false;
    for (let url: string | null = `${path}&${periodOf(this.#options)}&limit=${itemsMax}`; url; ) {
      const { page, lag } = await load(url);
      // Products may be indexed while later pages are read.
      first ??= page.indexedPosition;
      found.push(...(await itemsOf(page, this.#options)));
      this.#show(found.slice(0, itemsMax).toReversed(), lag);
      url = found.length < itemsMax ? page.next : null;
    }
    this.#completePosition = first ?? 0;
    this.#loadedAtMs = performance.now();
  }

  async #loadNew(): Promise<void> {
    const { path, itemsMax } = this.#options;
    let url: string | null = `${path}&after=${this.#completePosition}&limit=1000`;
    for (let pages = 0; url !== null; pages += 1) {
      if (pages === newPagesMax) return this.#loadAll();
      const { page, lag } = await load(url);
      const newest = this.#items.at(-1)?.position ?? 0;
      const items = await itemsOf(page, this.#options);
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
}

function periodOf({ since, until }: ItemOptions): string {
  const from = typeof since === 'string' ? since : new Date(Date.now() - since).toISOString();
  return until === null ? `since=${from}` : `since=${from}&until=${until}`;
}

/** Rejects with the text of the problem. */
async function load(url: string): Promise<{ page: FootprintPage; lag: number }> {
  // The next page has the configured address of the listener, which may differ from that of this page.
  const address = addressOf(`/api/footprints${new URL(url, location.href).search}`);
  const answer = await fetch(address, { signal: AbortSignal.timeout(answerMsMax) }).catch(() => {
    throw new Error('The receiver does not answer. The map reconnects automatically.');
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(String(body.detail ?? answer.statusText));
  return { page: body, lag: Number(answer.headers.get('earshot-index-lag') ?? 0) };
}

/** Returns footprints in map coordinates, without a colour yet. */
async function itemsOf(
  { footprints }: FootprintPage,
  { projection }: ItemOptions,
): Promise<Item[]> {
  const items: Item[] = [];
  for (const [i, { geometry, ...footprint }] of footprints.entries()) {
    if (i % itemsPerTask === itemsPerTask - 1) await new Promise((done) => setTimeout(done));
    const name = printable(footprint.productName ?? footprint.productId);
    items.push({ ...footprint, name, ...shapeOf(ringsOf(geometry, projection)), colour: 0 });
  }
  return items;
}
