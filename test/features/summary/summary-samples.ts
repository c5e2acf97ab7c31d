/** Summaries stored directly, with texts that no service would send, to test how they are shown. */
import type { NewSummaryJob, SummaryOutcome } from '../../../src/features/summary/terms.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { hourUs, withStore } from '../../helpers/filled-store.ts';
import { guid } from '../products/product-samples.ts';
import { productJob } from './summary-jobs.ts';

/** Escape sequences of both kinds, direction marks, markup, a formula, a line break, quotes. */
export const hostile = '=1+1 \u001b[2J\u009b31m\u202e<b>&"quoted", \nnext\u2028line\t\u0007';

/** Characters that must not reach a terminal. */
export const steering = /[\p{Cc}\u202e\u2028](?<!\n)/u;

interface SampleSummary {
  job?: Partial<NewSummaryJob>;
  /** Queued without one. */
  result?: SummaryOutcome;
}

/** Enqueues each summary, an hour apart from 07:00 on, and settles it. */
export function putSummaries(dataDir: string, all: readonly SampleSummary[]): Promise<void> {
  return withStore(dataDir, async ({ summaries }) => {
    for (const [i, { job, result }] of all.entries()) {
      const [productId, atUs] = [guid(`${i + 1}`), nowUs - (5 - i) * hourUs];
      const named = { subject: productId, productId, productName: `name of ${i + 1}` };
      const queued = productJob(1, { ...named, subscription: 'sea-ice', dueAtUs: atUs, ...job });
      const { ids } = await summaries.enqueue({ jobs: [queued], waitingMax: 100, atUs });
      const id = ids[0] ?? 0;
      if (result !== undefined) await summaries.settle({ job: { id, revision: 1 }, result });
    }
  });
}
