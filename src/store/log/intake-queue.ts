/** The bounded queue of deliveries before their commit, and the rate of the commits. */
import { pause } from '../../core/cli/io.ts';
import type { Thread } from '../../core/host/thread.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { CommitFacts, Delivery, Intake, Receipt } from '../../core/terms/ports.ts';

/** Maximum memory for bodies that wait for their commit, by default. */
const queueBytesMaxDefault = 64 * 2 ** 20;

/** Maximum size of the bodies of one commit: other programs wait only briefly for the lock. */
const commitBytesMax = 4 * 2 ** 20;

/** Maximum age of a commit that proves that notifications can be stored. */
const commitAgeMaxMs = 5_000;

/** Timeout of a delivery, whose sender then gets 503 and may retry, and of a change that waits with deliveries. */
const answerMs = 30_000;

/** Deliveries in a message to a thread, with their bodies in one buffer: one transfer is cheaper than a copy per body. */
export interface PackedDeliveries {
  buffer: ArrayBuffer;
  deliveries: (Omit<Delivery, 'body'> & { length: number })[];
}

export function packDeliveries(deliveries: readonly Delivery[]): PackedDeliveries {
  const { buffer } = new Uint8Array(deliveries.reduce((sum, { body }) => sum + body.byteLength, 0));
  let offset = 0;
  const packed = deliveries.map(({ body, ...rest }) => {
    new Uint8Array(buffer, offset).set(body);
    offset += body.byteLength;
    return { ...rest, length: body.byteLength };
  });
  return { buffer, deliveries: packed };
}

export function unpackDeliveries({ buffer, deliveries }: PackedDeliveries): Delivery[] {
  let offset = 0;
  return deliveries.map(({ length, ...rest }) => {
    const body = new Uint8Array(buffer, offset, length);
    offset += length;
    return { ...rest, body };
  });
}

/** A change that is small and frequent. */
export interface SmallChange {
  op: string;
  args: readonly unknown[];
}

/** Result of a commit, with the values of its changes. */
export interface Committed extends Omit<CommitFacts, 'deliveries'> {
  receipts: readonly Receipt[];
  values: readonly unknown[];
}

export interface IntakeOptions {
  /** The writer thread. */
  thread: Pick<Thread, 'isRunning' | 'call'>;
  /** Commits deliveries and changes together. A rejection means that none of them was committed. */
  commit(deliveries: readonly Delivery[], changes: readonly SmallChange[]): Promise<Committed>;
  /** Proves that deliveries can be committed. */
  check(): Promise<void>;
  /** Maximum deliveries of one commit. */
  deliveriesMax: number;
  /** Maximum commits in progress. */
  commitsMax: number;
  /** Minimum deliveries of a commit while another one is in progress: fewer wait, because more will arrive. */
  nextCommitMin: number;
  queueBytesMax?: number | undefined;
  /** Called after each commit; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

interface Waiting extends Pick<PromiseWithResolvers<Receipt>, 'resolve' | 'reject'> {
  delivery: Delivery;
  bytes: number;
}

/** Commits together all deliveries that arrive during the commits in progress (group commit). */
export class IntakeQueue implements Intake {
  readonly #options: IntakeOptions;
  readonly #bytesMax: number;
  #bytes = 0;
  #waiting: Waiting[] = [];
  #changes: (SmallChange & { resolve(value: unknown): void })[] = [];
  #commits = 0;
  readonly #answers = new Set<Promise<Receipt>>();
  /** Start of a commit that succeeded, by the monotonic clock. */
  #provenMs = Number.NEGATIVE_INFINITY;
  #check: Promise<void> | undefined;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#bytesMax = options.queueBytesMax ?? queueBytesMaxDefault;
  }

  /** Returns the size of the bodies that wait for their commit, and its maximum. */
  size() {
    return { bytes: this.#bytes, bytesMax: this.#bytesMax };
  }

  async accept(delivery: Delivery): Promise<Receipt> {
    const bytes = delivery.body.byteLength;
    if (this.#bytes + bytes > this.#bytesMax) {
      throw new AppError('unavailable', 'The intake queue is full.');
    }
    this.#bytes += bytes;
    const { promise, resolve, reject } = Promise.withResolvers<Receipt>();
    const waiting = { delivery, bytes, resolve, reject };
    const timer = setTimeout(() => {
      const index = this.#waiting.indexOf(waiting);
      if (index !== -1) this.#waiting.splice(index, 1);
      // The memory of a commit in progress stays counted until it ends.
      if (index !== -1) this.#bytes -= bytes;
      reject(new AppError('unavailable', 'The notification was not stored in time.'));
    }, answerMs);
    const answer = promise.finally(() => {
      clearTimeout(timer);
      this.#answers.delete(answer);
    });
    this.#answers.add(answer);
    const count = this.#waiting.push(waiting);
    // All deliveries of a turn of the event loop together.
    if (count === 1 || count === this.#options.nextCommitMin) {
      setImmediate(() => this.#commitWaiting());
    }
    return answer;
  }

  /** Commits a small change, with deliveries if some are waiting: a commit of its own would delay them. */
  change({ op, args }: SmallChange): Promise<unknown> {
    if (this.#waiting.length === 0) return this.#options.thread.call(op, args);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = setTimeout(() => {
      reject(new AppError('unavailable', 'The change was not stored in time.'));
    }, answerMs);
    this.#changes.push({ op, args, resolve });
    return promise.finally(() => clearTimeout(timer));
  }

  async checkWritable(): Promise<void> {
    const { thread, check } = this.#options;
    const startedMs = performance.now();
    if (thread.isRunning && startedMs - this.#provenMs < commitAgeMaxMs) return;
    this.#check ??= check()
      .then(() => {
        this.#provenMs = startedMs;
      })
      .finally(() => {
        this.#check = undefined;
      });
    await this.#check;
  }

  /** Resolves when all deliveries are answered. */
  async drain(): Promise<void> {
    this.#commitWaiting();
    await Promise.allSettled(this.#answers);
  }

  #commitWaiting(): void {
    const { commitsMax, nextCommitMin } = this.#options;
    const least = () => (this.#commits === 0 ? 1 : nextCommitMin);
    while (this.#waiting.length >= least() && this.#commits < commitsMax) {
      this.#commits += 1;
      void this.#commit(this.#nextGroup()).finally(() => {
        this.#commits -= 1;
        this.#commitWaiting();
      });
    }
  }

  #nextGroup(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((one, i) => {
      bytes += one.bytes;
      return i === this.#options.deliveriesMax || (i > 0 && bytes > commitBytesMax);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  /** Never rejects. */
  async #commit(group: readonly Waiting[]): Promise<void> {
    const { commit, onCommit, thread } = this.#options;
    const changes = this.#changes.splice(0);
    const startedMs = performance.now();
    try {
      const deliveries = group.map(({ delivery }) => delivery);
      const small = changes.map(({ op, args }) => ({ op, args }));
      const { receipts, values, ...facts } = await commit(deliveries, small);
      this.#provenMs = startedMs;
      onCommit?.({ ...facts, deliveries: group.length });
      for (const [i, { resolve }] of group.entries()) resolve(receipts[i] as Receipt);
      for (const [i, { resolve }] of changes.entries()) resolve(values[i]);
    } catch (error) {
      this.#provenMs = Number.NEGATIVE_INFINITY;
      for (const { op, args, resolve } of changes) resolve(thread.call(op, args));
      // One of them may be the cause.
      if (!isAppError(error, 'unavailable') && group.length + changes.length > 1) {
        for (const one of group) await this.#commit([one]);
        return;
      }
      for (const { reject } of group) reject(error);
    }
    for (const { bytes } of group) this.#bytes -= bytes;
  }
}

/** Minimum period over which the rate is measured. */
const periodMs = 250;

/** Commits: how many deliveries of this process arrive, a wait for the next ones, and a number that each change increases. */
export class IntakeActivity {
  #deliveries = 0;
  #changes = 0;
  /** Start of the current period, and the deliveries before it. */
  #start = { ms: performance.now(), deliveries: 0 };
  #lastPerSecond = 0;
  /** Aborted by the next change. */
  #changed = new AbortController();

  /** Deliveries that were committed so far. */
  get deliveries(): number {
    return this.#deliveries;
  }

  /** Increases with each change of the log of which this process knows. */
  get changes(): number {
    return this.#changes;
  }

  note({ deliveries }: Pick<CommitFacts, 'deliveries'>): void {
    if (performance.now() - this.#start.ms >= periodMs) {
      this.#lastPerSecond = this.perSecond();
      this.#start = { ms: performance.now(), deliveries: this.#deliveries };
    }
    this.#deliveries += deliveries;
    this.wake();
  }

  /** Notes that something was written to the log, and ends the waiting for a commit. */
  wake(): void {
    this.#changes += 1;
    this.#changed.abort();
    this.#changed = new AbortController();
  }

  /** Deliveries per second, in about the last half second. */
  perSecond(): number {
    const ms = performance.now() - this.#start.ms;
    if (ms < periodMs) return this.#lastPerSecond;
    return ((this.#deliveries - this.#start.deliveries) * 1_000) / ms;
  }

  /** Resolves after a change since a number of changes, after a time, or when the signal is aborted. */
  async next(
    timeoutMs: number,
    signal: AbortSignal,
    { since = this.#changes, wait = pause } = {},
  ): Promise<void> {
    if (since !== this.#changes) return;
    await wait(timeoutMs, AbortSignal.any([signal, this.#changed.signal]));
  }
}
