/** Commits of this process: how many deliveries arrive, and a wait for the next ones. */
import type { CommitFacts } from '../../core/terms/ports.ts';

/** Minimum period over which the rate is measured. */
const periodMs = 250;

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
