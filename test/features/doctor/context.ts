/** Everything that the doctor checks, on loopback: a receiver over HTTPS, and the sandbox as catalogue. */
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../../../src/core/terms/evaluation.ts';
import { openAccountContext } from '../subscriptions/account-context.ts';

/** A finding, as `earshot doctor --json` prints it. */
export type PrintedFinding = Omit<Finding, 'code'>;

/** Opens the context; everything is closed when the test has finished. */
export async function openDoctorContext() {
  const context = await openAccountContext();
  const { dataDir, env, lines, run } = context;
  // The program sets a umask that makes every file private; a test must not.
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o600);
  const earshot = (argv: string[], changed: Record<string, string> = {}) =>
    run(argv, { env: { ...env, ...changed } });
  /** Runs the doctor; returns its findings. */
  const doctor = async (changed: Record<string, string> = {}) => {
    const { code, out } = await earshot(['doctor', '--json'], changed);
    const findings: PrintedFinding[] = JSON.parse(out);
    return { code, findings };
  };
  /** Warnings and errors in the receiver's log. */
  const complaints = () => lines.filter(({ level }) => /warn|error/.test(level));
  return { ...context, earshot, doctor, complaints };
}
