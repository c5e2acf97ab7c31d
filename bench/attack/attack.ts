/** The attacks from command line to exit code: which one, and what all of them share. */
import { type BenchIo, runMeasurement } from '../run-measurement.ts';
import { fuzzMeasurement } from './fuzz.ts';
import { loginMeasurement } from './logins.ts';
import { scanMeasurement } from './scan.ts';
import { slowMeasurement } from './slow.ts';

const helpText = `Usage: npm run attack -- fuzz|slow|logins|scan [options]

Attacks an \`earshot start\` of its own, on loopback, and exits with 1 when that does harm.

  fuzz    hostile, broken and odd requests to every listener
  slow    thousands of connections that never come to an end
  logins  failed logins from thousands of addresses
  scan    what testssl.sh finds wrong with the HTTPS of the public listener

Each has a --help of its own. docs/security.md has the figures.
`;

/** Runs one attack and returns the exit code: 0 no harm done, 1 harm, 2 wrong usage. */
export async function runAttack([name, ...argv]: string[], io: BenchIo): Promise<number> {
  if (name === 'fuzz') return runMeasurement(fuzzMeasurement, argv, io);
  if (name === 'slow') return runMeasurement(slowMeasurement, argv, io);
  if (name === 'logins') return runMeasurement(loginMeasurement, argv, io);
  if (name === 'scan') return runMeasurement(scanMeasurement, argv, io);
  const isHelp = name === '--help' || name === '-h';
  (isHelp ? io.stdout : io.stderr).write(helpText);
  return isHelp ? 0 : 2;
}
