/** The bounded queue between the receiver and the writer thread, and the rate of its commits. */
import { AppError } from '../../core/terms/app-error.ts';
import type { CommitFacts, Delivery, Intake, Receipt } from '../../core/terms/ports.ts';
import type { StoreThread } from '../engine/thread.ts';

/** Maximum age of a commit that proves that the store is writable. */
const commitAgeMaxUs = 5_000_000;

/** A delivery in a message to the writer thread: its body is a slice of the message's buffer. */
export interface PackedDelivery extends Omit<Delivery, 'body'> {
  id: number;
  offset: number;
  length: number;
}

/** Copies deliveries into one buffer: one transfer is cheaper than one copy per body. */
export function packDeliveries(collected: readonly { id: number; delivery: Delivery }[]): {
  buffer: ArrayBuffer;
  deliveries: PackedDelivery[];
} {
  const total = collected.reduce((sum, { delivery }) => sum + delivery.body.byteLength, 0);
  const bytes = new Uint8Array(total);
  const deliveries: PackedDelivery[] = [];
  let offset = 0;
  for (const { id, delivery } of collected) {
    const { body, ...rest } = delivery;
    bytes.set(body, offset);
    deliveries.push({ ...rest, id, offset, length: body.byteLength });
    offset += body.byteLength;
  }
  return { buffer: bytes.buffer, deliveries };
}

export function unpackDeliveries(
  buffer: ArrayBuffer,
  deliveries: readonly PackedDelivery[],
): { id: number; delivery: Delivery }[] {
  return deliveries.map(({ id, offset, length, ...rest }) => ({
    id,
    delivery: { ...rest, body: new Uint8Array(buffer, offset, length) },
  }));
}

/** Returns the memory of a delivery's bodies. */
export function bodyBytes({ body, encoded }: Delivery): number {
  const content = encoded?.content;
  return body.byteLength + (content instanceof Uint8Array ? content.byteLength : 0);
}

interface IntakeQueueOptions {
  thread: StoreThread;
  nowUs: () => number;
  /** Maximum memory for bodies that wait for their commit. */
  queueBytesMax: number;
}

export class IntakeQueue implements Intake {
  readonly #options: IntakeQueueOptions;
  /** Deliveries of one turn of the event loop, which are sent together. */
  #collected: { id: number; delivery: Delivery }[] = [];
  #queuedBytes = 0;
  #lastCommitUs = Number.NEGATIVE_INFINITY;
  #check: Promise<void> | undefined;

  constructor(options: IntakeQueueOptions) {
    this.#options = options;
  }

  /** Size of the bodies that wait for their commit. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  async accept(delivery: Delivery): Promise<Receipt> {
    const bytes = bodyBytes(delivery);
    if (this.#queuedBytes + bytes > this.#options.queueBytesMax) {
      throw new AppError('unavailable', 'The intake queue is full.');
    }
    // Counted until the thread has released the body, which may be after the sender got its 503.
    const { id, answer } = this.#options.thread.expect<Receipt>(() => {
      this.#queuedBytes -= bytes;
    });
    this.#queuedBytes += bytes;
    if (this.#collected.push({ id, delivery }) === 1) setImmediate(() => this.flush());
    try {
      const receipt = await answer;
      this.#lastCommitUs = this.#options.nowUs();
      return receipt;
    } catch (error) {
      this.#lastCommitUs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  async checkWritable(): Promise<void> {
    const { thread, nowUs } = this.#options;
    if (thread.isRunning && nowUs() - this.#lastCommitUs < commitAgeMaxUs) return;
    this.#check ??= thread
      .call('check', [])
      .then(() => {
        this.#lastCommitUs = nowUs();
      })
      .finally(() => {
        this.#check = undefined;
      });
    await this.#check;
  }

  /** Sends the collected deliveries. */
  flush(): void {
    const collected = this.#collected;
    if (collected.length === 0) return;
    this.#collected = [];
    const { buffer, deliveries } = packDeliveries(collected);
    this.#options.thread.send('deliveries', [buffer, deliveries], [buffer]);
  }
}

/** Minimum period over which the rate is measured. */
const periodMs = 250;

/** Commits of this process: how many deliveries arrive, and a wait for the next ones. */
export class IntakeActivity {
  #deliveries = 0;
  /** Start of the current period, and the deliveries before it. */
  #start = { ms: performance.now(), deliveries: 0 };
  #lastPerSecond = 0;
  readonly #waiting = new Set<() => void>();

  /** Deliveries that were committed so far. */
  get deliveries(): number {
    return this.#deliveries;
  }

  note({ deliveries }: Pick<CommitFacts, 'deliveries'>): void {
    if (performance.now() - this.#start.ms >= periodMs) {
      this.#lastPerSecond = this.perSecond();
      this.#start = { ms: performance.now(), deliveries: this.#deliveries };
    }
    this.#deliveries += deliveries;
    this.wake();
  }

  /** Ends the waiting for a commit: something else was written to the log. */
  wake(): void {
    for (const wake of this.#waiting) wake();
  }

  /** Deliveries per second, in about the last half second. */
  perSecond(): number {
    const ms = performance.now() - this.#start.ms;
    if (ms < periodMs) return this.#lastPerSecond;
    return ((this.#deliveries - this.#start.deliveries) * 1_000) / ms;
  }

  /** Resolves after the next commit, after a time, or when the signal is aborted. */
  next(timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, timeoutMs);
      signal.addEventListener('abort', wake, { once: true });
      this.#waiting.add(wake);
    });
  }
}
