/** Steps of the doctor behind the receiver: inference service, sinks, alert channels. */

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Io } from '../../core/cli/io.ts';
import { reachHost } from '../../core/http/bounded-fetch.ts';
import { type Finding, finding } from '../../core/terms/finding.ts';
import { openStoreReader } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import type { ChannelConfig } from '../alerts/settings.ts';
import { createChatClient } from '../summary/chat-client.ts';
import { checkInference } from '../summary/check-inference.ts';
import { areAllOff, plainSummaryRule, type RefusedAnswer } from '../summary/terms.ts';
import { type DoctorSettings, needsOf, type Step, settingFinding } from './steps.ts';

/** Timeout of one answer; short, because a person waits for it. */
const timeoutMs = 30_000;

/** Findings of a sink are named `sink <name>`. */
export function deliverySteps(settings: DoctorSettings, io: Io): Step[] {
  const { summary, summaryRules, sinks, watch } = settings;
  const deps = { findProgram: createFindProgram(io), signal: io.signal };
  return [
    {
      name: 'inference service',
      needs: needsOf(summary && summaryRules),
      run: () => checkSummaries(settings, io),
    },
    {
      name: 'sinks',
      needs: needsOf(sinks),
      run: async () => {
        const { definitions = [], faulty = [] } = sinks ?? {};
        const faults = faulty.flatMap(({ name, problems }) =>
          problems.map((problem) => settingFinding(`sink ${name}`, problem)),
        );
        if (definitions.length === 0 && faults.length > 0) return faults;
        // Loads the code of sinks only if there are sinks.
        const { checkSinks } = await import('../sinks/registry.ts');
        const subscriptions = (settings.inFile ?? []).map(({ name }) => name);
        return [...(await checkSinks(definitions, { ...deps, subscriptions })), ...faults];
      },
    },
    {
      name: alerts,
      needs: needsOf(watch),
      run: async () => (watch === undefined ? [] : checkAlerts(watch, deps)),
    },
  ];
}

async function checkSummaries(
  { summary, summaryRules, dataDir }: DoctorSettings,
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
  const level = areAllOff([defaultRule, ...(summaryRules?.values() ?? [])]) ? 'ok' : 'warning';
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

/** Returns null if the program can be executed; otherwise the reason, to follow "… cannot be run: ". */
type FindProgram = (program: string) => string | null;

/** Searches as the system does: by path if there is a slash, otherwise in the folders of PATH. */
function createFindProgram({ env, workingDir }: Pick<Io, 'env' | 'workingDir'>): FindProgram {
  const isExecutable = (path: string) => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile();
    } catch {
      return false;
    }
  };
  return (program) => {
    const folders = program.includes('/') ? [''] : (env.PATH ?? '').split(delimiter);
    const paths = folders.map((folder) => resolve(workingDir, join(folder, program)));
    return paths.some(isExecutable) ? null : 'there is no executable file of this name';
  };
}

/** Returns one finding per channel, or one if there is none. A URL is a secret: only its host is named. Never rejects. */
export async function checkAlerts(
  { alertUrl, alertCommand }: Pick<ChannelConfig, 'alertUrl' | 'alertCommand'>,
  { findProgram, signal }: { findProgram: FindProgram; signal: AbortSignal },
): Promise<Finding[]> {
  const faults = new Map<string, string | null>();
  if (alertUrl !== null)
    faults.set(new URL(alertUrl).host, await reachHost(alertUrl, { ca: null, signal }));
  const program = alertCommand?.[0];
  if (program !== undefined) faults.set(program, findProgram(program));
  if (faults.size === 0) {
    const text = 'No channel is configured: alerts only appear in the log and in `earshot alerts`.';
    return [finding(alerts, 'warning', text, setChannel)];
  }
  const usable = '`earshot alerts --test` sends a test message.';
  return [...faults].map(([target, fault]) =>
    fault === null
      ? finding(alerts, 'ok', `${target} can be used; ${usable}`)
      : finding(alerts, 'critical', `${target} cannot be used: ${fault}.`, setChannel),
  );
}

const alerts = 'alerts';

const setChannel =
  'Set EARSHOT_ALERT_URL (for example the incoming webhook of a chat) or EARSHOT_ALERT_COMMAND.';
