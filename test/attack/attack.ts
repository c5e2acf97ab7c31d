/** `npm run attack`: selects and runs an attack. */
import { type BenchIo, runBenchmark } from '../../bench/harness.ts';
import { fuzz } from './fuzz.ts';
import { logins } from './logins.ts';
import { queries } from './queries.ts';
import { scan } from './scan.ts';
import { services } from './services.ts';
import { slow } from './slow.ts';

const helpText = `Usage: npm run attack -- fuzz|slow|logins|queries|services|scan [options]

Starts its own \`earshot start\` on loopback, attacks it, and exits with 1 if that causes harm.

  fuzz    hostile, malformed and unusual requests to every listener
  slow    thousands of slow connections that never finish
  logins  failed logins from thousands of addresses
  queries hostile bodies of queries
  services hostile answers of the catalogue and of servers of sinks
  scan    testssl.sh against the HTTPS of the public listener

Each has its own --help. Figures: docs/decisions/0051-attack-commands.md.
`;

/** Runs one attack and returns the exit code: 0 no harm, 1 harm, 2 wrong usage. */
export async function run([name, ...argv]: readonly string[], io: BenchIo): Promise<number> {
  if (name === 'fuzz') return runBenchmark(fuzz, argv, io);
  if (name === 'slow') return runBenchmark(slow, argv, io);
  if (name === 'logins') return runBenchmark(logins, argv, io);
  if (name === 'queries') return runBenchmark(queries, argv, io);
  if (name === 'services') return runBenchmark(services, argv, io);
  if (name === 'scan') return runBenchmark(scan, argv, io);
  const isHelp = name === '--help' || name === '-h';
  (isHelp ? io.stdout : io.stderr).write(helpText);
  return isHelp ? 0 : 2;
}
