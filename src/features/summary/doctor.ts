/** The doctor's checks of summaries: the filters of their rules, and the inference service. */

import type { Io } from '../../core/cli/io.ts';
import { type Config, loadConfig } from '../../core/config/config.ts';
import { subscriptionsFileName } from '../../core/config/subscriptions-file.ts';
import { type DoctorSlot, fixInFile, needsOf } from '../../core/doctor/steps.ts';
import { type Finding, failedFinding, finding } from '../../core/terms/evaluation.ts';
import { createChatClient, inferenceFacts, modelAdvice } from './chat-client.ts';
import { loadSummaryRules, ruleFilterFindings } from './rules.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from './terms.ts';

/** Timeout of one answer; short, because a person waits for it. */
const timeoutMs = 30_000;

interface Read {
  summary: Config['summary'] | undefined;
  rules: ReadonlyMap<string, SummaryRule> | undefined;
}

export const stepsOf: DoctorSlot['stepsOf'] = async ({ serve }, io, reader) => {
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
      run: () => checkSummaries({ summary, rules }, io),
    },
  ];
};

/** Errors of the filters have failed as part of the configuration. */
function filterFindings(rules: ReadonlyMap<string, SummaryRule>): Finding[] {
  return ruleFilterFindings(rules).map(({ where, finding: { message, hint = '' } }) =>
    finding('filters', 'warning', `${where}: ${message}`, `${hint} ${fixInFile}`.trim()),
  );
}

async function checkSummaries({ summary, rules }: Read, io: Io): Promise<Finding[]> {
  if (summary?.inference) return checkInference(summary.inference, io);
  // A missing model is not a failure: summaries then come from the template.
  const defaultRule = plainSummaryRule(summary?.rule ?? 'off');
  const level = areAllOff([defaultRule, ...(rules?.values() ?? [])]) ? 'ok' : 'warning';
  const nextStep =
    'For summaries by a language model, set EARSHOT_INFERENCE_API_KEY (a key of your project) and EARSHOT_INFERENCE_MODEL (a model of that project).';
  const text = 'No model is configured: summaries, if requested, come from the template.';
  return [finding('inference service', level, text, nextStep)];
}

/** Requests one short answer. */
async function checkInference(
  { url: baseUrl, apiKey, model }: NonNullable<Config['summary']['inference']>,
  { fetch, signal }: Io,
): Promise<Finding[]> {
  const check = 'inference service';
  try {
    const client = createChatClient({ baseUrl, apiKey, fetch, timeoutMs });
    const messages = [{ role: 'user', content: 'Answer with the word: ready' }] as const;
    await client.complete({ model, messages }, signal);
  } catch (error) {
    const facts = inferenceFacts(error);
    if (facts === null) throw error;
    // These imply that the service knows the key.
    const isReached = facts.scope === 'answer' || facts.status === 429;
    const level = facts.scope === 'caller' ? 'unknown' : isReached ? 'warning' : 'critical';
    return [{ ...failedFinding(check, error, modelAdvice), level }];
  }
  return [finding(check, 'ok', `The service offers ${model}.`)];
}
