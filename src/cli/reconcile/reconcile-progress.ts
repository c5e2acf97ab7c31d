/** Shows how far a comparison has got, on a terminal: one line, written over and over. */
import type { ReconcileProgress } from '../../admin/reconcile/reconcile.ts';
import { shortDateUs } from '../../domain/notification-date.ts';
import type { Io } from '../io.ts';

export interface ShownProgress {
  show(progress: ReconcileProgress): void;
  /** Takes the line away, for another one. */
  clear(): void;
  /** Ends the line. */
  done(): void;
}

/** `spent` tells how many requests were sent. */
export function createReconcileProgress(
  { stderr }: Pick<Io, 'stderr'>,
  spent: () => { requests: number },
): ShownProgress {
  let shown = '';
  return {
    show: (progress) => {
      if (stderr.isTTY !== true) return;
      const text = progressLine(progress, spent().requests);
      const width = Math.max(20, (stderr.columns ?? 100) - 1);
      const cut = text.slice(0, width);
      stderr.write(`\r${cut.padEnd(shown.length)}`);
      shown = cut;
    },
    clear: () => {
      if (shown !== '') stderr.write(`\r${' '.repeat(shown.length)}\r`);
      shown = '';
    },
    done: () => {
      if (shown !== '') stderr.write('\n');
      shown = '';
    },
  };
}

/** What matters most comes first: a narrow terminal cuts the end. */
function progressLine(progress: ReconcileProgress, requests: number): string {
  const { task, tasks, tasksDone, upToUs, seen, total, etaMs } = progress;
  const of = total === null ? '' : ` of ${total.toLocaleString('en-US')}`;
  return [
    `${task.subscription} ${task.event} (${Math.min(tasksDone + 1, tasks)} of ${tasks})`,
    `${seen.toLocaleString('en-US')}${of}`,
    ...(etaMs === null || etaMs === 0 ? [] : [`${duration(etaMs)} left`]),
    shortDateUs(upToUs),
    requests === 1 ? '1 request' : `${requests} requests`,
  ].join(' · ');
}

/** `about 12 min`, `about 40 s`. */
export function duration(ms: number): string {
  const seconds = Math.max(1, Math.round(ms / 1_000));
  if (seconds < 100) return `about ${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 100 ? `about ${minutes} min` : `about ${Math.round(minutes / 60)} h`;
}
