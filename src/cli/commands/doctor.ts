/** `earshot doctor`: checks the installation from the configuration to the delivery. */

import { AppError } from '../../domain/app-error.ts';
import { type Finding, findingStates } from '../../domain/finding.ts';
import { counted } from '../../domain/formats.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand } from '../command.ts';
import { readDoctorSettings, runSteps } from '../doctor/steps.ts';
import { dataDirOf, jsonOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, wrapText, writeJson, writeOut } from '../output.ts';

export const doctorCommand = defineCommand('doctor', {
  description:
    'Check the installation from configuration to delivery, with advice for each problem.',
  flags: (command) => command.addOption(jsonOption()),
  help: `The command changes nothing. You can run the command at any time: before the setup, and while the
receiver runs. If a check fails, then the checks that depend on the failed check are skipped. The
endpoint is checked from this machine: a firewall between catalogue and endpoint is not detected.

Fields of --json: check, state, message, advice. The state is pass, warn, fail or skipped.

Exit codes: 0 no check failed (warnings are possible), 1 a check failed, 2 wrong usage or
configuration.

Examples:
  $ earshot doctor                                                  run all checks
  $ earshot doctor --json | jq '.[] | select(.state == "fail")'     list failed checks
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

/** Every field is always present. */
type ShownFinding = Omit<Finding, 'advice'> & { advice: string | null };

const styles = { pass: 'green', warn: 'yellow', fail: 'red', skipped: 'dim' } as const;

const stateWidth = Math.max(...findingStates.map((state) => state.length));

/** Length of the longest check name, except subscription names. */
const checkWidth = 'subscription default'.length;

/** Checks that need a running receiver or a registered subscription. */
const checksOfRunning = ['endpoint', 'subscriptions', 'queues'];

/**
 * Prints each finding as soon as it is known. `beforeStart` omits checks that need a running receiver; `hasEndpoint` is
 * set before the first registration. Rejects with
 * `unavailable` if a check failed; its facts name the failed checks,
 * except those of services that did not answer.
 */
export async function runDoctor(
  io: Io,
  {
    json,
    beforeStart = false,
    hasEndpoint,
  }: { json?: true; beforeStart?: boolean; hasEndpoint?: boolean },
): Promise<void> {
  // Loaded on demand: the checks import most modules, and `--help` does not need them.
  const account = await import('../doctor/account-steps.ts');
  const endpoint = await import('../doctor/endpoint-steps.ts');
  const { sharedLogSteps } = await import('../doctor/shared-log-step.ts');
  const settings = await readDoctorSettings(io, hasEndpoint);
  const all = [
    ...endpoint.machineSteps(settings, io),
    ...sharedLogSteps(settings, io),
    ...account.filterSteps(settings),
    ...endpoint.endpointSteps(settings, io),
    ...account.accountSteps(settings, io),
    ...endpoint.inferenceSteps(settings, io),
    ...endpoint.deliverySteps(settings, io),
  ];
  const steps = beforeStart ? all.filter(({ name }) => !checksOfRunning.includes(name)) : all;
  const counts = { pass: 0, warn: 0, fail: 0, skipped: 0 };
  const failed: string[] = [];
  const findings = counting(runSteps(steps, io.signal), counts, failed);
  if (json) await writeJson(io.stdout, findings);
  else for await (const finding of findings) await writeOut(io.stdout, textOf(finding, io));
  const { pass, warn, fail, skipped } = counts;
  const summary = `${pass} passed, ${counted(warn, 'warning')}, ${fail} failed, ${skipped} skipped.`;
  if (fail > 0) throw new AppError('unavailable', summary, { facts: { failed } });
  io.stderr.write(`${painter(io, io.stderr)(warn > 0 ? 'yellow' : 'green', summary)}\n`);
}

async function* counting(
  findings: AsyncIterable<Finding>,
  counts: Record<Finding['state'], number>,
  failed: string[],
): AsyncGenerator<ShownFinding> {
  for await (const { check, state, message, advice = null, code } of findings) {
    counts[state] += 1;
    if (state === 'fail' && code !== 'unavailable') failed.push(check);
    yield { check, state, message, advice };
  }
}

function textOf({ check, state, message, advice }: ShownFinding, io: Io): string {
  const paint = painter(io, io.stdout);
  const mark = paint(styles[state], state.padEnd(stateWidth));
  const indent = ' '.repeat(stateWidth + 2 + checkWidth + 2);
  // A finding about a filter has further lines that mark the position.
  const [first = '', ...places] = asCalled(message, io).split('\n').map(printable);
  const wrapped = (text: string) => wrapText(text, indent, io.stdout);
  const lines = [
    `${mark}  ${printable(check).padEnd(checkWidth)}  ${wrapped(first).join('\n').slice(indent.length)}`,
    ...places.map((line) => `${indent}${line}`),
    ...(advice === null
      ? []
      : wrapped(printable(asCalled(advice, io))).map((line) => paint('dim', line))),
  ];
  return lines.map((line) => `${line}\n`).join('');
}
