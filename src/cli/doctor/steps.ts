/** Runs checks in order, and skips those that cannot run after what has failed. */

import type { ProbeEndpoint } from '../../admin/endpoint-probe.ts';
import {
  type AccountConfig,
  accountSections,
  type Config,
  checkConfig,
  loadConfig,
  type ServeConfig,
  serveSections,
  type WatchConfig,
  watchSections,
} from '../../config/config.ts';
import { problemsOf } from '../../config/load.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import { AppError } from '../../domain/app-error.ts';
import { type Check, type Finding, failedFinding } from '../../domain/finding.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { areAllOff, type SummaryRule } from '../../domain/summaries.ts';
import { probeTrusting } from '../account.ts';
import type { Io } from '../io.ts';

export interface Step {
  /** What its findings are mostly called, and what other steps name it by. */
  name: string;
  /** Steps that must have come through: no finding of theirs failed, and they were not skipped. */
  needs: readonly string[];
  run: Check;
}

/** Of a step for settings that could not be read: that has failed as a check of its own. */
export const needsOf = (setting: unknown) => (setting === undefined ? ['configuration'] : []);

/** Why a step did not come through: the first of the chain that did not. */
interface Cause {
  name: string;
  failed: boolean;
}

/** Gives each finding as soon as it is known; ends early when the signal is aborted. Never throws. */
export async function* runSteps(
  steps: readonly Step[],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  const causes = new Map<string, Cause>();
  for (const step of steps) {
    if (signal.aborted) return;
    const { name } = step;
    const cause = step.needs.map((need) => causes.get(need)).find((one) => one !== undefined);
    if (cause !== undefined) {
      causes.set(name, cause);
      yield skipped(name, cause);
      continue;
    }
    const findings = await run(step);
    const failed = findings.some(({ state }) => state === 'fail');
    const through = !failed && findings.every(({ state }) => state !== 'skipped');
    if (!through) causes.set(name, { name, failed });
    yield* findings;
  }
}

async function run({ name, run }: Step): Promise<Finding[]> {
  try {
    return await run();
  } catch (error) {
    return [failedFinding(name, error, 'Please report it.')];
  }
}

function skipped(check: string, { name, failed }: Cause): Finding {
  const message = `Not checked, as "${name}" ${failed ? 'failed' : 'was skipped'}.`;
  return { check, state: 'skipped', message };
}

/** Undefined is what cannot be read, or is not set. */
export interface DoctorSettings {
  /** One sentence or two each; `advice` is for those that do not say what to do. */
  problems: readonly { message: string; advice: string }[];
  dataDir: string;
  publicUrl: string | undefined;
  catalogueUrl: string | undefined;
  tokenUrl: string | undefined;
  serve: Readonly<ServeConfig> | undefined;
  account: Readonly<AccountConfig> | undefined;
  /** Null without `earshot.config.ts`. */
  inFile: DesiredSubscription[] | null | undefined;
  summary: Readonly<Config['summary']> | undefined;
  /** Those of `earshot.config.ts`, by the subscription's name. */
  summaryRules: ReadonlyMap<string, SummaryRule> | undefined;
  /** The sound ones of `earshot.config.ts`. */
  sinks: LoadedSinks['definitions'] | undefined;
  /** The others, which are told with the checks of sinks. */
  faultySinks: LoadedSinks['faulty'];
  watch: Readonly<WatchConfig> | undefined;
  /** Trusts EARSHOT_PROBE_CA too; null without that variable. */
  probeWithExtra: ProbeEndpoint | null;
}

/** Never rejects for what a user has set. */
export async function readDoctorSettings(
  io: Pick<Io, 'env' | 'readFile' | 'workingDir'>,
): Promise<DoctorSettings> {
  const problems = new Map<string, DoctorSettings['problems'][number]>();
  const attempt = async <Value>(read: () => Value | Promise<Value>, otherwise = inVariables) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      for (const { message, advice = otherwise } of problemsOf(error))
        problems.set(message, { message, advice });
      return undefined;
    }
  };
  const attemptFile = <Value>(read: (folder: string) => Promise<Value>) =>
    attempt(() => read(io.workingDir), fixInFile);
  const serve = await attempt(() => loadConfig(io, serveSections));
  const account = await attempt(() => loadConfig(io, accountSections));
  const inFile = await attemptFile(loadSubscriptionsFile);
  const summary = await attempt(() => loadConfig(io, ['summary']).summary);
  const summaryRules = await attemptFile(loadSummaryRules);
  const loaded = await attemptFile(loadEachSink);
  const watch = await attempt(() => loadConfig(io, watchSections));
  const isAsked = !areAllOff(summaryRules?.values() ?? []);
  if (isAsked && serve?.index === false)
    problems.set(rulesWithoutIndex, { message: rulesWithoutIndex, advice: inVariables });
  // Their problems are those of the sections above.
  const sections = ['dataDir', 'publicUrl', 'catalogueUrl', 'tokenUrl', 'probeCa'] as const;
  const {
    dataDir = '',
    publicUrl,
    catalogueUrl,
    tokenUrl,
    probeCa,
  } = checkConfig(io, sections).config;
  const probeWithExtra =
    (await attempt(() => (probeCa === undefined ? null : probeTrusting(probeCa, io)))) ?? null;
  const values = { dataDir, publicUrl, catalogueUrl, tokenUrl };
  const handOver = { sinks: loaded?.definitions, faultySinks: loaded?.faulty ?? [], watch };
  const read = { serve, account, inFile, summary, summaryRules, ...handOver, probeWithExtra };
  return { problems: [...problems.values()], ...values, ...read };
}

/** What EARSHOT_SUMMARY asks for is checked where it is read. */
const rulesWithoutIndex = `${subscriptionsFileName} asks for summaries, which are made from the product index, but EARSHOT_INDEX is off. Set it to on, or take the rules out.`;

/** What to do about a problem that does not say so itself. */
const inVariables = 'All variables: docs/reference/configuration.md.';

export const fixInFile = `Fix it in ${subscriptionsFileName}.`;

/** What is wrong with the variables and with `earshot.config.ts`, one finding each. */
export function checkConfiguration({ problems, inFile }: DoctorSettings): Finding[] {
  const check = 'configuration';
  if (problems.length > 0) return problems.map((problem) => ({ check, state: 'fail', ...problem }));
  const count = inFile?.length ?? null;
  const file =
    count === null ? '' : ` ${subscriptionsFileName} names ${count} of them to register.`;
  return [{ check, state: 'pass', message: `The variables can be read.${file}` }];
}
