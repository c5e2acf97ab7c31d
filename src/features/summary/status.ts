/** Summaries in the status. */

import { z } from 'zod';
import { gaugesIn } from '../../core/status/gauge.ts';
import { defineStatusPart, type StatusSources } from '../../core/status/status.ts';
import { minuteUs } from '../../core/terms/dates.ts';
import { type Evaluation, evaluation, ok } from '../../core/terms/evaluation.ts';
import { counted, countText, lengthText } from '../../core/terms/text.ts';
import { lagWarning } from '../../store/status.ts';
import { summaryModeOf } from './rules.ts';
import { summaryReader, summaryRuleKinds } from './terms.ts';

const count = z.int().min(0);

const summarySchema = z.object({
  /** Combined mode of all subscriptions: `each` if any has it. */
  mode: z.enum(summaryRuleKinds),
  waiting: count,
  requests: count.describe('Number of requests to the inference service in the last 24 hours.'),
  tokens: count.describe('Number of tokens in the last 24 hours.'),
  /** May be in the past. */
  dueAtUs: z.number().nullable(),
  refusedAnswer: z
    .string()
    .nullable()
    .describe('Why the answers of the model are refused; null if the last ones are not.'),
});

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    summaries: z.infer<typeof summarySchema> | null;
  }
}

async function readSummaries({ store: { summaries }, setting, io }: StatusSources, nowUs: number) {
  const [mode, waiting, { requests, tokens }, refusedAnswer] = await Promise.all([
    summaryModeOf(setting('summary'), io),
    summaries.waiting(),
    summaries.spending(nowUs),
    summaries.refusedAnswer(),
  ]);
  return { mode, ...waiting, requests, tokens, refusedAnswer };
}

/** Tolerated lag of the reader that requests summaries. */
const lagMaxUs = 15 * minuteUs;

const part = defineStatusPart({
  name: 'summaries',
  unknown: { summaries: null },
  fields: { summaries: summarySchema.nullable() },
  open: (sources) => ({
    read: async (nowUs) => ({ summaries: await readSummaries(sources, nowUs) }),
  }),
  evaluate: ({ summaries, readers, atUs, configFile }): Evaluation => {
    if (summaries === null && configFile.fault !== null) {
      return ok('unknown while earshot.config.ts is invalid');
    }
    if (summaries === null || (summaries.mode === 'off' && summaries.waiting === 0))
      return ok('off');
    const { mode, waiting, dueAtUs, requests, tokens, refusedAnswer } = summaries;
    if (refusedAnswer !== null) {
      const cause = `The texts come from the template. ${refusedAnswer}`;
      return evaluation('warning', cause, 'Set EARSHOT_INFERENCE_MODEL to another model.');
    }
    const reader = readers.find(({ name }) => name === summaryReader);
    const lag = reader && mode !== 'off' ? lagWarning(reader, atUs, lagMaxUs) : null;
    if (lag !== null) return lag;
    const since =
      dueAtUs === null || dueAtUs >= atUs ? '' : `, overdue for ${lengthText(atUs - dueAtUs)}`;
    const open = waiting === 0 ? 'none waiting' : `${countText(waiting)} waiting${since}`;
    return ok(`${open}; ${counted(requests, 'request')} and ${counted(tokens, 'token')} in 24 h`);
  },
  metrics: {
    Summaries: [
      gaugesIn('summaries')(
        'earshot_summaries_waiting',
        'Number of waiting summaries.',
        ({ summaries }) => summaries?.waiting,
      ),
      gaugesIn('requests')(
        'earshot_inference_requests_last_day',
        'Number of requests to the inference service in the last 24 hours.',
        ({ summaries }) => summaries?.requests,
      ),
      gaugesIn('tokens')(
        'earshot_inference_tokens_last_day',
        'Number of tokens that the inference service reported in the last 24 hours.',
        ({ summaries }) => summaries?.tokens,
      ),
    ],
  },
});

export const parts = [part];
