/** Runs the doctor's checks in order, and skips those whose prerequisites failed. Reads their settings. */

import { probeTrusting } from '../../admin/open-account.ts';
import { accountSections } from '../../admin/settings.ts';
import { needsEndpoint } from '../../admin/subscription-ways.ts';
import type { Io } from '../../core/cli/io.ts';
import { checkConfig, loadConfig, loadServed } from '../../core/config/config.ts';
import { checkConsolePassword } from '../../core/config/console-password.ts';
import { problemsOf } from '../../core/config/load.ts';
import {
  type ConfigPlace,
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { type Check, type Finding, failedFinding, finding } from '../../core/terms/finding.ts';
import { counted } from '../../core/terms/formats.ts';
import { channelSections } from '../alerts/settings.ts';
import { loadEachSink } from '../sinks/definitions.ts';
import { loadSummaryRules } from '../summary/rules.ts';
import { areAllOff } from '../summary/terms.ts';

export interface Step {
  /** Usual name of its findings; other steps refer to it. */
  name: string;
  /** Steps that must have succeeded: none of their findings is critical or unknown. */
  needs: readonly string[];
  run: Check;
}

/** Makes a step for a setting that could not be read depend on the configuration, which failed. */
export const needsOf = (setting: unknown) => (setting === undefined ? ['configuration'] : []);

/** Yields each finding as soon as it is known. Ends early if the signal is aborted. Never throws. */
export async function* runSteps(
  steps: readonly Step[],
  signal: AbortSignal,
): AsyncGenerator<Finding> {
  /** Steps that failed or were skipped, with the first cause. */
  const causes = new Map<string, string>();
  for (const { name, needs, run } of steps) {
    if (signal.aborted) return;
    const cause = needs.map((need) => causes.get(need)).find((one) => one !== undefined);
    if (cause !== undefined) {
      causes.set(name, cause);
      yield finding(name, 'unknown', `Not checked, because of "${cause}".`);
      continue;
    }
    // Also for a check that throws at once.
    const findings = await (async () => run())().catch((error: unknown) => [
      failedFinding(name, error, 'Please report it.'),
    ]);
    if (findings.some(({ level }) => level === 'critical' || level === 'unknown'))
      causes.set(name, name);
    yield* findings;
  }
}

/** Settings of the doctor. Undefined: not set, or not readable. */
export type DoctorSettings = Awaited<ReturnType<typeof readDoctorSettings>>;

/** Reads all settings. Never rejects because of invalid settings. */
export async function readDoctorSettings(
  io: Pick<Io, 'env' | 'readFile' | 'workingDir' | 'settings'>,
  isEndpointNeeded?: boolean,
) {
  const problems = new Map<string, { message: string; advice: string }>();
  const add = (message: string, advice: string) => problems.set(message, { message, advice });
  const attempt = async <Value>(read: () => Value | Promise<Value>, nextStep = inVariables) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      for (const { message, advice = nextStep } of problemsOf(error)) add(message, advice);
      return undefined;
    }
  };
  const inFolder = <Value>(read: (place: ConfigPlace) => Promise<Value>) =>
    attempt(() => read(io), fixInFile);
  // False if all subscriptions are pull.
  const hasEndpoint = isEndpointNeeded ?? (await needsEndpoint(io));
  // Their problems are reported by the other sections.
  const own = ['dataDir', 'publicUrl', 'catalogueUrl', 'tokenUrl', 'probeCa'] as const;
  const { dataDir = '', publicUrl, catalogueUrl, tokenUrl, probeCa } = checkConfig(io, own).config;
  const read = {
    serve: await attempt(() => loadServed(io, 'serve', { hasEndpoint })),
    account: await attempt(() => loadConfig(io, accountSections)),
    // Null without `earshot.config.ts`.
    inFile: await inFolder(loadSubscriptionsFile),
    summary: await attempt(() => loadConfig(io, ['summary']).summary),
    summaryRules: await inFolder(loadSummaryRules),
    sinks: await inFolder(loadEachSink),
    watch: await attempt(() => loadConfig(io, channelSections)),
    // Also trusts EARSHOT_PROBE_CA; null without that variable.
    probeWithExtra:
      (await attempt(() => (probeCa === undefined ? null : probeTrusting(probeCa, io)))) ?? null,
  };
  // EARSHOT_SUMMARY is checked when it is read.
  if (!areAllOff(read.summaryRules?.values() ?? []) && read.serve?.index === false)
    add(
      `${subscriptionsFileName} requests summaries, which need the product index, but EARSHOT_INDEX is off.`,
      `Set EARSHOT_INDEX to on, or remove \`summary\` from ${subscriptionsFileName}.`,
    );
  const values = { hasEndpoint, dataDir, publicUrl, catalogueUrl, tokenUrl };
  return { problems: [...problems.values()], ...values, ...read };
}

/** Next step for problems without their own. */
const inVariables = 'All variables: docs/reference/configuration.md.';

export const fixInFile = `Fix it in ${subscriptionsFileName}.`;

/** Returns a finding about a setting that must be corrected. */
export function settingFinding(check: string, text: string, nextStep = fixInFile): Finding {
  const [first = '', ...position] = text.split('\n');
  const found = finding(check, 'critical', first, nextStep, ...position);
  return { ...found, code: 'configuration' };
}

/** Returns one finding for each problem of the variables and of `earshot.config.ts`. */
export function checkConfiguration({ problems, inFile, serve }: DoctorSettings): Finding[] {
  const check = 'configuration';
  if (problems.length > 0)
    return problems.map(({ message, advice }) => settingFinding(check, message, advice));
  const count = inFile?.length ?? null;
  const file =
    count === null ? '' : ` ${subscriptionsFileName} defines ${counted(count, 'subscription')}.`;
  const warnings = checkConsolePassword(serve?.console?.password);
  return [finding(check, 'ok', `The variables are valid.${file}`), ...warnings];
}
