/** The doctor's checks of summaries: the filters of their rules, and the inference service. */

import type { Io } from '../../core/cli/io.ts';
import { type Config, loadConfig } from '../../core/config/config.ts';
import { subscriptionsFileName } from '../../core/config/subscriptions-file.ts';
import { type DoctorSlot, fixInFile, needsOf } from '../../core/doctor/steps.ts';
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import { openStoreReader } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import { createChatClient } from './chat-client.ts';
import { checkInference } from './check-inference.ts';
import { loadSummaryRules, ruleFilterFindings } from './rules.ts';
import { areAllOff, plainSummaryRule, type RefusedAnswer, type SummaryRule } from './terms.ts';

/** Timeout of one answer; short, because a person waits for it. */
const timeoutMs = 30_000;

interface Read {
  summary: Config['summary'] | undefined;
  rules: ReadonlyMap<string, SummaryRule> | undefined;
}

export const stepsOf: DoctorSlot['stepsOf'] = async ({ dataDir, serve }, io, reader) => {
  const summary = await reader.attempt(() => loadConfig(io, ['summary']).summary);
  const rules = await reader.attempt(() => loadSummaryRules(io), fixInFile);
  // EARSHOT_SUMMARY is checked when it is read.
  if (!areAllOff(rules?.values() ?? []) && serve?.index === false)
    reader.report(
      `${subscriptionsFileName} requests summaries, which need the product index, but EARSHOT_INDEX is off.`,
      `Set EARSHOT_INDEX to on, or remove \`summary\` from ${subscriptionsFileName}.`,
    );
  const needs = needsOf(summary && rules);
  return [
    { name: 'filters', needs, run: async () => filterFindings(rules ?? new Map()) },
    {
      name: 'inference service',
      needs,
      run: () => checkSummaries({ summary, rules }, dataDir, io),
    },
  ];
};

/** Errors of the filters have failed as part of the configuration. */
function filterFindings(rules: ReadonlyMap<string, SummaryRule>): Finding[] {
  return ruleFilterFindings(rules).map(({ where, finding: { message, hint = '' } }) =>
    finding('filters', 'warning', `${where}: ${message}`, `${hint} ${fixInFile}`.trim()),
  );
}

async function checkSummaries(
  { summary, rules }: Read,
  dataDir: string,
  io: Io,
): Promise<Finding[]> {
  const { fetch, signal } = io;
  if (summary?.inference) {
    const { url: baseUrl, apiKey, model } = summary.inference;
    const client = createChatClient({ baseUrl, apiKey, fetch, timeoutMs });
    const refusedAnswer = await refusedAnswerIn(dataDir, io);
    return checkInference({ client, model, refusedAnswer, signal });
  }
  // A missing model is not a failure: summaries then come from the template.
  const defaultRule = plainSummaryRule(summary?.rule ?? 'off');
  const level = areAllOff([defaultRule, ...(rules?.values() ?? [])]) ? 'ok' : 'warning';
  const nextStep =
    'For summaries by a language model, set EARSHOT_INFERENCE_API_KEY (a key of your project) and EARSHOT_INFERENCE_MODEL (a model of that project).';
  const text = 'No model is configured: summaries, if requested, come from the template.';
  return [finding('inference service', level, text, nextStep)];
}

/** Null without a store. Another check reports a store that cannot be read. */
async function refusedAnswerIn(
  dataDir: string,
  { features }: Pick<Io, 'features'>,
): Promise<RefusedAnswer | null> {
  const store = openStoreReader(dataDir, tablesOf(features));
  return store.summaries
    .refusedAnswer()
    .catch(() => null)
    .finally(() => store.close());
}
