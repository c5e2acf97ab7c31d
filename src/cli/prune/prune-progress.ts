/** Shows how far a prune has got, on a terminal: one line, written over and over. */
import type { Prunable, PrunePhase } from '../../domain/pruning.ts';
import { sizeText } from '../../domain/size-text.ts';
import type { Pruned } from '../../store/pruning/prune-log.ts';
import type { Io } from '../io.ts';
import { counted, whole } from '../sinks/counted.ts';

export interface PruneProgress {
  show(phase: PrunePhase, pruned: Readonly<Pruned>): void;
  showIndex(events: number): void;
  /** Ends the line. */
  done(): void;
}

export function createPruneProgress(
  { stderr }: Pick<Io, 'stderr'>,
  { notifications }: Prunable,
): PruneProgress {
  let shown = '';
  const write = (text: string) => {
    if (stderr.isTTY !== true) return;
    stderr.write(`\r${text.padEnd(shown.length)}`);
    shown = text;
  };
  return {
    show: (phase, pruned) => {
      const gone = pruned.notifications;
      if (phase === 'space') write(`Giving space back: ${sizeText(pruned.space)}`);
      else write(`Removing: ${whole(gone)} of ${whole(Math.max(gone, notifications))}`);
    },
    showIndex: (events) => write(`Product index: ${counted(events, 'event')} taken out`),
    done: () => {
      if (shown !== '') stderr.write('\n');
    },
  };
}
