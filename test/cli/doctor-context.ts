/** All that the doctor looks at, on loopback: a receiver over HTTPS, and the sandbox as catalogue. */
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { openAccountContext } from './account-context.ts';

/** What `earshot doctor --json` prints of one finding. */
export interface PrintedFinding {
  check: string;
  state: 'pass' | 'warn' | 'fail' | 'skipped';
  message: string;
  advice: string | null;
}

/** Everything is closed when the test has finished. */
export async function openDoctorContext() {
  const context = await openAccountContext();
  const { dataDir, env, log, run } = context;
  // The program itself sets a mask that makes every file its owner's alone; a test must not.
  for (const name of readdirSync(dataDir)) chmodSync(join(dataDir, name), 0o600);
  const earshot = (argv: string[], changed: Record<string, string> = {}) =>
    run(argv, { env: { ...env, ...changed } });
  /** Runs the doctor; gives its findings. */
  const doctor = async (changed: Record<string, string> = {}) => {
    const { code, out } = await earshot(['doctor', '--json'], changed);
    const findings: PrintedFinding[] = JSON.parse(out);
    return { code, findings };
  };
  /** Warnings and errors of the receiver. */
  const complaints = () => log.filter((line) => /"level":"(warn|error)"/.test(line));
  return { ...context, earshot, doctor, complaints };
}
