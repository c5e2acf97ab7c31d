/** The attacks of `npm run attack`: which one, and what all of them share. */
import { type BenchIo, runBenchmark } from '../../bench/harness.ts';
import { fuzz } from './fuzz.ts';
import { logins } from './logins.ts';
import { scan } from './scan.ts';
import { slow } from './slow.ts';

const helpText = `Usage: npm run attack -- fuzz|slow|logins|scan [options]

Attacks an \`earshot start\` of its own, on loopback, and exits with 1 when that does harm.

  fuzz    hostile, broken and odd requests to every listener
  slow    thousands of connections that never come to an end
  logins  failed logins from thousands of addresses
  scan    what testssl.sh finds wrong with the HTTPS of the public listener

Each has a --help of its own. docs/security.md has the figures.
`;

/** Runs one attack and returns the exit code: 0 no harm done, 1 harm, 2 wrong usage. */
export async function run([name, ...argv]: readonly string[], io: BenchIo): Promise<number> {
  if (name === 'fuzz') return runBenchmark(fuzz, argv, io);
  if (name === 'slow') return runBenchmark(slow, argv, io);
  if (name === 'logins') return runBenchmark(logins, argv, io);
  if (name === 'scan') return runBenchmark(scan, argv, io);
  const isHelp = name === '--help' || name === '-h';
  (isHelp ? io.stdout : io.stderr).write(helpText);
  return isHelp ? 0 : 2;
}
