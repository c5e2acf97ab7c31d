/** `earshot doctor`: finds out what is wrong, from the configuration to the delivery. */

import { AppError } from '../../domain/app-error.ts';
import { type Finding, findingStates } from '../../domain/finding.ts';
import { printable } from '../../domain/text.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand } from '../command.ts';
import { readDoctorSettings, runSteps } from '../doctor/steps.ts';
import { dataDirOf } from '../flags.ts';
import type { Io } from '../io.ts';
import { counted, painter, wrapText, writeJson, writeOut } from '../output.ts';

export const doctorCommand = defineCommand('doctor', {
  description: 'Check everything from configuration to delivery, and say what to do.',
  flags: (command) => command.option('--json', 'as JSON: check state message advice'),
  help: `Changes neither the account nor what is stored; may be run at any time, before anything else is set
up and beside a running receiver.
Each check passes, warns, fails, or is skipped when an earlier one makes it impossible.
What others see of the endpoint is seen from this machine: a firewall on the way does not show.

Fields of --json, one object for each finding: check (what was looked at), state (pass, warn, fail
or skipped), message (what was found), advice (what to do; null where there is nothing to do). Exit
code 1 when anything fails; warnings do not count.

Examples:
  $ earshot doctor
  $ earshot doctor --json | jq '.[] | select(.state == "fail")'`,
  run: async ({ command, ...io }, flags: { json?: true }) => {
    // Only a folder that was named: before the first start there is none.
    const dataDir = dataDirOf(command);
    if (dataDir !== undefined) {
      const { requireDatabase } = await import('../../store/engine/database.ts');
      requireDatabase(dataDir);
    }
    await runDoctor(io, flags);
  },
});

/** Every field is always there, so that programs need not ask. */
type ShownFinding = Omit<Finding, 'advice'> & { advice: string | null };

const styles = { pass: 'green', warn: 'yellow', fail: 'red', skipped: 'dim' } as const;

const stateWidth = Math.max(...findingStates.map((state) => state.length));

/** As long as the longest name of a check; a subscription's may be longer. */
const checkWidth = 'certificate validity'.length;

/** Checks that need a running receiver or a registered subscription. */
const checksOfRunning = [
  'port',
  'certificate',
  'endpoint login',
  'login required',
  'subscriptions',
];

/**
 * Prints each finding as soon as it is known. `beforeStart` leaves out what needs a running receiver. Rejects with
 * `unavailable` when one is a failure.
 */
export async function runDoctor(
  io: Io,
  { json, beforeStart = false }: { json?: true; beforeStart?: boolean },
): Promise<void> {
  // The checks load nearly every part: not for `--help`.
  const account = await import('../doctor/account-steps.ts');
  const endpoint = await import('../doctor/endpoint-steps.ts');
  const settings = await readDoctorSettings(io);
  const all = [
    ...endpoint.machineSteps(settings, io),
    ...account.filterSteps(settings),
    ...endpoint.endpointSteps(settings, io),
    ...account.accountSteps(settings, io),
    ...endpoint.inferenceSteps(settings, io),
    ...endpoint.deliverySteps(settings, io),
  ];
  const steps = beforeStart ? all.filter(({ name }) => !checksOfRunning.includes(name)) : all;
  const counts = { pass: 0, warn: 0, fail: 0, skipped: 0 };
  const findings = counting(runSteps(steps, io.signal), counts);
  if (json) await writeJson(io.stdout, findings);
  else for await (const finding of findings) await writeOut(io.stdout, textOf(finding, io));
  const { pass, warn, fail, skipped } = counts;
  const summary = `${pass} passed, ${counted(warn, 'warning')}, ${fail} failed, ${skipped} skipped.`;
  if (fail > 0) throw new AppError('unavailable', summary);
  io.stderr.write(`${painter(io, io.stderr)(warn > 0 ? 'yellow' : 'green', summary)}\n`);
}

async function* counting(
  findings: AsyncIterable<Finding>,
  counts: Record<Finding['state'], number>,
): AsyncGenerator<ShownFinding> {
  for await (const { check, state, message, advice = null } of findings) {
    counts[state] += 1;
    yield { check, state, message, advice };
  }
}

function textOf({ check, state, message, advice }: ShownFinding, io: Io): string {
  const paint = painter(io, io.stdout);
  const mark = paint(styles[state], state.padEnd(stateWidth));
  const indent = ' '.repeat(stateWidth + 2 + checkWidth + 2);
  // A finding about a filter shows the place in it, in lines of its own.
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
