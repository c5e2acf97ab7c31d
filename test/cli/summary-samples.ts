/** Summaries stored directly, with texts that no service would send, to test how they are shown. */
import type { NewSummaryJob, SummaryOutcome, SummaryText } from '../../src/domain/summaries.ts';
import { nowUs } from './fake-io.ts';
import { hourUs, withStore } from './filled-store.ts';
import { guid } from './product-samples.ts';

/** Escape sequences of both kinds, direction marks, markup, a formula, a line break, quotes. */
export const hostile = '=1+1 \u001b[2J\u009b31m\u202e<b>&"quoted", \nnext\u2028line\t\u0007';

/** Characters that must not reach a terminal. */
export const steering = /[\p{Cc}\u202e\u2028](?<!\n)/u;

/** The state of a summary about a product. */
export interface SampleSummary {
  job?: Partial<NewSummaryJob>;
  text?: Partial<SummaryText>;
  outcome?: SummaryOutcome;
  /** Stays queued when both are missing. */
  waits?: true;
}

/** Enqueues each summary, an hour apart from 07:00 on, and settles it. */
export function putSummaries(dataDir: string, all: readonly SampleSummary[]): Promise<void> {
  return withStore(dataDir, async ({ summaries }) => {
    for (const [i, { job, text, outcome, waits }] of all.entries()) {
      const atUs = nowUs - (5 - i) * hourUs;
      const queued = { ...jobOf(guid(`${i + 1}`), atUs), ...job };
      const { ids } = await summaries.enqueue({ jobs: [queued], waitingMax: 100, atUs });
      if (waits) continue;
      const written = { ...plainText, createdAtUs: atUs, ...text };
      const key = Buffer.alloc(32, i + 1);
      const result = outcome ?? { outcome: 'text', key, text: written };
      const settled = { id: ids[0] ?? 0, revision: 1 };
      await summaries.settle({ job: settled, request: null, result, nowUs: atUs });
    }
  });
}

const plainText = { text: 'A plain text.', model: 'a/b', verified: true, doubts: [] } as const;

function jobOf(productId: string, dueAtUs: number): NewSummaryJob {
  return {
    kind: 'product',
    subject: productId,
    productId,
    productName: `name of ${productId.slice(-1)}`,
    subscription: 'sea-ice',
    position: 1,
    scope: null,
    dueAtUs,
  };
}
