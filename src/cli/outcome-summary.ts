/** Sums up once a minute what the receiver did, so that a quiet log still shows that it lives. */
import type { Logger } from '../domain/ports.ts';
import type { Outcome } from '../receiver/app.ts';

const intervalMs = 60_000;

export interface OutcomeSummary {
  observe(outcome: Outcome): void;
  /** Reports what has come since the last report, and ends. */
  stop(): void;
}

/** Logs one line a minute, unless nothing happened. */
export function startOutcomeSummary(log: Logger): OutcomeSummary {
  let counts: Partial<Record<Outcome, number>> = {};
  const report = () => {
    if (Object.keys(counts).length > 0) log.info(counts, 'requests since the last report');
    counts = {};
  };
  const timer = setInterval(report, intervalMs);
  timer.unref();
  return {
    observe: (outcome) => {
      counts[outcome] = (counts[outcome] ?? 0) + 1;
    },
    stop: () => {
      clearInterval(timer);
      report();
    },
  };
}
