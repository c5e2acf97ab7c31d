/** `earshot doctor`: checks the installation from the configuration to the delivery. */

import { defineCommand } from '../../core/cli/command.ts';
import { dataDirOf, jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { asCalled, painter, wrapText, writeJson, writeOut } from '../../core/cli/output.ts';
import type { Step } from '../../core/doctor/steps.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { type Finding, failedFinding, finding, type Level } from '../../core/terms/evaluation.ts';
import { printable } from '../../core/terms/text.ts';
import { createSettingsReader, readDoctorSettings } from './settings.ts';

export const doctorCommand = defineCommand('doctor', {
  description:
    'Check the installation from configuration to delivery, with the next step for each problem.',
  flags: (command) => command.addOption(jsonOption()),
  help: `The command changes nothing. You can run the command at any time: before the setup, and while the
receiver runs. If a check fails, then the checks that depend on the failed check are skipped. The
endpoint is checked from this machine: a firewall between catalogue and endpoint is not detected.

Fields of --json: check, level, text, evidence, nextStep. The level is ok, warning, critical (the
check failed) or unknown (not checked). evidence lists further lines of the text.

Exit codes: 0 no check failed (warnings are possible), 1 a check failed, 2 wrong usage, or only
settings are wrong.

Examples:
  $ earshot doctor                                                  run all checks
  $ earshot doctor --json | jq '.[] | select(.level == "critical")'     list failed checks
  $ earshot doctor > doctor.txt                                     save the report`,
  run: async ({ command, ...io }, flags: { json?: true }) => {
    // Only for an explicit folder: before the first start there is no database.
    const dataDir = dataDirOf(command);
    if (dataDir !== undefined) {
      const { requireDatabase } = await import('../../store/engine/database.ts');
      requireDatabase(dataDir);
    }
    await runDoctor(io, flags);
  },
});

const styles = { ok: 'green', warning: 'yellow', critical: 'red', unknown: 'dim' } as const;

const levelWidth = 'critical'.length;

/** Length of the longest check name, except subscription names. */
const checkWidth = 'subscription default'.length;

/** Checks that need a running receiver or a registered subscription. */
const checksOfRunning = ['endpoint', 'subscriptions'];

/**
 * Prints each finding as soon as it is known. `beforeStart` omits checks that need a running receiver. Rejects with `unavailable` if a check failed, with `configuration` if only settings
 * are the cause.
 */
export async function runDoctor(
  io: Io,
  { json, beforeStart = false }: { json?: true; beforeStart?: boolean },
): Promise<void> {
  // Loaded on demand: the checks import most modules, and `--help` does not need them.
  const account = await import('./account-steps.ts');
  const endpoint = await import('./endpoint-steps.ts');
  const reader = createSettingsReader();
  const settings = await readDoctorSettings(io, reader);
  const slots = await Promise.all(io.features.flatMap(({ doctor }) => doctor?.() ?? []));
  const added = await Promise.all(slots.map((slot) => slot.stepsOf(settings, io, reader)));
  const all = [
    ...endpoint.machineSteps(settings, io),
    ...account.filterSteps(settings, io),
    ...endpoint.endpointSteps(settings, io),
    ...account.accountSteps(settings, io),
    ...added.flat(),
  ];
  const steps = beforeStart ? all.filter(({ name }) => !checksOfRunning.includes(name)) : all;
  const seen: Finding[] = [];
  const findings = recorded(runSteps(steps, io.signal), seen);
  if (json) await writeJson(io.stdout, findings);
  else for await (const found of findings) await writeOut(io.stdout, textOf(found, io));
  const having = (level: Level) => seen.filter((one) => one.level === level);
  const levels = Object.keys(styles) as Level[];
  const summary = `${levels.map((level) => `${having(level).length} ${level}`).join(', ')}.`;
  const critical = having('critical');
  if (critical.length > 0) {
    const code = critical.every((one) => one.code === 'configuration')
      ? 'configuration'
      : 'unavailable';
    throw new AppError(code, summary);
  }
  const style = having('warning').length > 0 ? 'yellow' : 'green';
  io.stderr.write(`${painter(io, io.stderr)(style, summary)}\n`);
}

type Shown = Omit<Finding, 'code'>;

async function* recorded(findings: AsyncIterable<Finding>, seen: Finding[]): AsyncGenerator<Shown> {
  for await (const found of findings) {
    seen.push(found);
    const { code: _, ...shown } = found;
    yield shown;
  }
}

function textOf({ check, level, text, evidence, nextStep }: Shown, io: Io): string {
  const paint = painter(io, io.stdout);
  const mark = paint(styles[level], level.padEnd(levelWidth));
  const indent = ' '.repeat(levelWidth + 2 + checkWidth + 2);
  const wrapped = (long: string) => wrapText(printable(asCalled(long, io)), indent, io.stdout);
  const lines = [
    `${mark}  ${printable(check).padEnd(checkWidth)}  ${wrapped(text).join('\n').slice(indent.length)}`,
    // Also marks positions in a filter, so it is not wrapped.
    ...evidence.map((line) => `${indent}${printable(line)}`),
    ...(nextStep === null ? [] : wrapped(nextStep).map((line) => paint('dim', line))),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

/**
 * Runs steps in order, and skips those whose prerequisites failed. Yields each finding as soon as it is known. Ends early if
 * the signal is aborted. Never throws.
 */
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
