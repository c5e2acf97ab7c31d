/** Runs the doctor's checks in order, and skips those whose prerequisites failed. */

import type { ProbeEndpoint } from '../../admin/endpoint-probe.ts';
import {
  type AccountConfig,
  accountSections,
  type Config,
  checkConfig,
  loadConfig,
  loadServed,
  type ServeConfig,
  serveSections,
  type WatchConfig,
  watchSections,
} from '../../config/config.ts';
import { checkConsolePassword } from '../../config/console-password.ts';
import { problemsOf } from '../../config/load.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import { AppError } from '../../domain/app-error.ts';
import { type Check, type Finding, failedFinding } from '../../domain/finding.ts';
import { counted } from '../../domain/formats.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { areAllOff, type SummaryRule } from '../../domain/summaries.ts';
import { probeTrusting } from '../account.ts';
import type { Io } from '../io.ts';
import { needsEndpoint } from '../subscription-ways.ts';

export interface Step {
  /** Usual name of its findings; other steps refer to it. */
  name: string;
  /** Steps that must have passed: none of their findings failed or was skipped. */
  needs: readonly string[];
  run: Check;
}

/** Makes a step for a setting that could not be read depend on the configuration, which failed. */
export const needsOf = (setting: unknown) => (setting === undefined ? ['configuration'] : []);

/** Step that failed or was skipped first, and so blocks others. */
interface Cause {
  name: string;
  failed: boolean;
}

/** Yields each finding as soon as it is known. Ends early if the signal is aborted. Never throws. */
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
    const passed = !failed && findings.every(({ state }) => state !== 'skipped');
    if (!passed) causes.set(name, { name, failed });
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
  const message = `Not checked, because "${name}" ${failed ? 'failed' : 'was skipped'}.`;
  return { check, state: 'skipped', message };
}

/** Settings of the doctor. Undefined: not set, or not readable. */
export interface DoctorSettings {
  /** False if all subscriptions are pull. */
  hasEndpoint: boolean;
  /** Problems of the settings, one or two sentences each. */
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
  /** Rules of `earshot.config.ts`, by name of the subscription. */
  summaryRules: ReadonlyMap<string, SummaryRule> | undefined;
  /** Valid sinks of `earshot.config.ts`. */
  sinks: LoadedSinks['definitions'] | undefined;
  /** Invalid sinks, reported by the checks of sinks. */
  faultySinks: LoadedSinks['faulty'];
  watch: Readonly<WatchConfig> | undefined;
  /** Also trusts EARSHOT_PROBE_CA; null without that variable. */
  probeWithExtra: ProbeEndpoint | null;
}

/** Reads all settings. Never rejects because of invalid settings. */
export async function readDoctorSettings(
  io: Pick<Io, 'env' | 'readFile' | 'workingDir'>,
  isEndpointNeeded?: boolean,
): Promise<DoctorSettings> {
  const problems = new Map<string, DoctorSettings['problems'][number]>();
  const attempt = async <Value>(
    read: () => Value | Promise<Value>,
    defaultAdvice = inVariables,
  ) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      for (const { message, advice = defaultAdvice } of problemsOf(error))
        problems.set(message, { message, advice });
      return undefined;
    }
  };
  const attemptFile = <Value>(read: (folder: string) => Promise<Value>) =>
    attempt(() => read(io.workingDir), fixInFile);
  const hasEndpoint = isEndpointNeeded ?? (await needsEndpoint(io));
  const serve = await attempt(() => loadServed(io, serveSections, { hasEndpoint }));
  const account = await attempt(() => loadConfig(io, accountSections));
  const inFile = await attemptFile(loadSubscriptionsFile);
  const summary = await attempt(() => loadConfig(io, ['summary']).summary);
  const summaryRules = await attemptFile(loadSummaryRules);
  const loaded = await attemptFile(loadEachSink);
  const watch = await attempt(() => loadConfig(io, watchSections));
  const hasRules = !areAllOff(summaryRules?.values() ?? []);
  if (hasRules && serve?.index === false)
    problems.set(rulesWithoutIndex, { message: rulesWithoutIndex, advice: inVariables });
  // Their problems are already reported by the sections above.
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
  const delivery = { sinks: loaded?.definitions, faultySinks: loaded?.faulty ?? [], watch };
  const read = {
    hasEndpoint,
    serve,
    account,
    inFile,
    summary,
    summaryRules,
    ...delivery,
    probeWithExtra,
  };
  return { problems: [...problems.values()], ...values, ...read };
}

/** Problem of the rules in the file; EARSHOT_SUMMARY is checked when it is read. */
const rulesWithoutIndex = `${subscriptionsFileName} requests summaries, which need the product index, but EARSHOT_INDEX is off. Set EARSHOT_INDEX to on. If you need no summaries, remove \`summary\` from the file.`;

/** Advice for problems without their own. */
const inVariables = 'All variables: docs/reference/configuration.md.';

export const fixInFile = `Fix it in ${subscriptionsFileName}.`;

/** Returns one finding for each problem of the variables and of `earshot.config.ts`. */
export function checkConfiguration({ problems, inFile, serve }: DoctorSettings): Finding[] {
  const check = 'configuration';
  if (problems.length > 0) return problems.map((problem) => ({ check, state: 'fail', ...problem }));
  const count = inFile?.length ?? null;
  const file =
    count === null ? '' : ` ${subscriptionsFileName} defines ${counted(count, 'subscription')}.`;
  const warnings = checkConsolePassword(serve?.console?.password);
  return [{ check, state: 'pass', message: `The variables are valid.${file}` }, ...warnings];
}
