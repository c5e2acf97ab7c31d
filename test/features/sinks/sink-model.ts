/** Model of a sink's queue as plain lists, for comparison with the store. */
import type { Replay, SinkCounts, SinkItem, Sinks } from '../../../src/features/sinks/terms.ts';

type Enqueue = Parameters<Sinks['enqueue']>[0];
type Settled = Parameters<Sinks['settle']>[0][number];
type Ids = readonly number[] | 'all';

const isLive = ({ state, replayId }: SinkItem) => state === 'waiting' && replayId === null;

const isSameProduct = (one: SinkItem, other: SinkItem) =>
  one.productId.toLowerCase() === other.productId.toLowerCase();

export class SinkModel {
  readonly #sink: string;
  /** In the order of queueing. */
  items: SinkItem[] = [];
  cursor: number | null = null;
  replays: Replay[] = [];
  /** Ids of items that failed, the most recent last. */
  #failed: number[] = [];

  constructor(sink: string) {
    this.#sink = sink;
  }

  /** Last position that was read for a stream. */
  positionOf(replayId: number | null): number {
    if (replayId === null) return this.cursor ?? 0;
    return this.replays.find(({ id }) => id === replayId)?.position ?? 0;
  }

  /** Moves the position of a stream. Returns true if its items are to be added. */
  move({ replayId, after, upTo, atUs }: Enqueue): boolean {
    if (after !== this.positionOf(replayId)) return false;
    if (replayId === null) {
      this.cursor = upTo;
      return true;
    }
    const replay = this.replays.find(({ id }) => id === replayId);
    if (replay === undefined || replay.endedAtUs !== null) return false;
    replay.position = upTo;
    if (upTo >= replay.lastPosition) replay.endedAtUs = atUs;
    return true;
  }

  settle(result: Settled): void {
    const item = this.items.find(({ id }) => id === result.id);
    if (result.outcome === 'acknowledged') this.#remove([result.id]);
    else if (item?.state === 'waiting') {
      item.error = result.error;
      if (result.outcome === 'dead') item.state = 'dead';
      else item.dueAtUs = result.nextAttemptAtUs;
      if (result.outcome === 'dead' || result.counts) item.attempts += 1;
      this.#failed = [...this.#failed.filter((id) => id !== item.id), item.id];
    }
  }

  retry(ids: Ids, nowUs: number): number {
    const chosen = this.#chosen('dead', ids);
    for (const item of chosen) {
      const fresh = { state: 'waiting', attempts: 0, error: null } as const;
      Object.assign(item, fresh, { dueAtUs: nowUs, queuedAtUs: nowUs });
      this.#failed = this.#failed.filter((id) => id !== item.id);
    }
    return chosen.length;
  }

  drop(state: SinkItem['state'], ids: Ids, nowUs: number): number {
    const chosen = this.#chosen(state, ids);
    this.#remove(chosen.map(({ id }) => id));
    if (state === 'waiting' && ids === 'all') {
      for (const replay of this.replays) replay.endedAtUs ??= nowUs;
    }
    return chosen.length;
  }

  /**
   * The first waiting item of each product: replayed ones that block live ones, live ones, the
   * others.
   */
  due(nowUs: number): SinkItem[] {
    const due = this.#first().filter(({ dueAtUs }) => dueAtUs <= nowUs);
    const turnOf = (item: SinkItem) => {
      if (item.replayId === null) return 1;
      return this.items.some((one) => isLive(one) && isSameProduct(one, item)) ? 0 : 2;
    };
    return due.toSorted((one, other) => turnOf(one) - turnOf(other));
  }

  nextDueAtUs(): number | null {
    const times = this.#first().map(({ dueAtUs }) => dueAtUs);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Null for a sink without cursor and replays. */
  counts(): SinkCounts | null {
    if (this.cursor === null && this.replays.length === 0) return null;
    const waiting = this.items.filter(({ state }) => state === 'waiting');
    const oldest = (items: SinkItem[]) =>
      items.length === 0 ? null : Math.min(...items.map(({ queuedAtUs }) => queuedAtUs));
    return {
      ...{ sink: this.#sink, position: this.cursor, waiting: waiting.length },
      failed: waiting.filter(({ error }) => error !== null).length,
      dead: this.items.length - waiting.length,
      replays: this.replays.filter(({ endedAtUs }) => endedAtUs === null).length,
      // No acknowledgement has a time.
      ...{ delivered: 0, lastDeliveredAtUs: null },
      oldestWaitingAtUs: oldest(waiting),
      oldestLiveWaitingAtUs: oldest(waiting.filter(({ replayId }) => replayId === null)),
      failingSinceUs: oldest(waiting.filter(({ error }) => error !== null)),
      lastError: this.items.find(({ id }) => id === this.#failed.at(-1))?.error ?? null,
    };
  }

  #first(): SinkItem[] {
    const seen = new Set<string>();
    return this.items.filter(({ state, productId }) => {
      const key = productId.toLowerCase();
      if (state === 'dead' || seen.has(key)) return false;
      seen.add(key);
      return true;
    });
  }

  #chosen(state: SinkItem['state'], ids: Ids): SinkItem[] {
    return this.items.filter(
      (one) => one.state === state && (ids === 'all' || ids.includes(one.id)),
    );
  }

  #remove(ids: readonly number[]): void {
    this.items = this.items.filter(({ id }) => !ids.includes(id));
    this.#failed = this.#failed.filter((id) => !ids.includes(id));
  }
}
