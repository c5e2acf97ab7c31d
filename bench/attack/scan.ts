/** The scan from command line to verdict: testssl.sh against the public listener of a receiver of our own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import type { Cleanup } from '../cleanup.ts';
import { readFlags } from '../option-values.ts';
import type { Progress } from '../progress.ts';
import type { Measurement } from '../run-measurement.ts';
import { alignTable, figure } from '../table.ts';
import { type Finding, type JudgedFinding, judgeFindings } from './scan-findings.ts';
import { startTarget } from './target.ts';

interface ScanOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly isQuick: boolean;
  readonly folder: string;
}

interface ScanReport {
  readonly version: string;
  /** How many findings there are of each severity. */
  readonly severities: Readonly<Record<string, number>>;
  /** LOW and worse. */
  readonly judged: readonly JudgedFinding[];
}

const helpText = `Usage: npm run attack -- scan [options]

Runs testssl.sh (Debian's package of that name) against the public listener of an \`earshot start\` of its own.
Every finding of severity LOW or worse must be one that is known, with a reason; else the exit code is 1.

  --quick       protocols, ciphers and headers alone
  --dir FOLDER  where the data is written (the system's temporary folder)
  --json        one JSON object instead of a table
  --help        this text

Exit code: 0 nothing found, 1 something, 2 wrong usage.

Examples:
  npm run attack -- scan              a minute and a half
  npm run attack -- scan --quick
`;

/** Protocols, kinds of ciphers, forward secrecy, the server's choice, headers. */
const quickParts = ['-p', '-s', '-f', '-P', '-h'];
const timeoutMs = 600_000;

const findingsSchema = z.array(
  z.object({ id: z.string(), severity: z.string(), finding: z.string() }),
);

/** The program under the name that this machine knows it by; null where it is not installed. */
export function findScanner(): string | null {
  const names = ['testssl', 'testssl.sh'];
  return names.find((name) => spawnSync(name, ['--version']).error === undefined) ?? null;
}

export const scanMeasurement: Measurement<ScanOptions, ScanReport> = {
  parse: (argv) => {
    const own = { quick: { type: 'boolean', default: false }, dir: { type: 'string' } } as const;
    const { help, json, quick: isQuick, dir: folder = tmpdir() } = readFlags(argv, own);
    return { help, json, isQuick, folder };
  },
  helpText,
  measure: scan,
  render,
  hasFailed: ({ judged }) => judged.some(({ reason }) => reason === null),
};

async function scan(
  { isQuick, folder: parentFolder }: ScanOptions,
  _argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<ScanReport> {
  const scanner = findScanner();
  if (scanner === null) {
    throw new Error('testssl.sh is not installed. On Debian: apt-get install testssl.sh');
  }
  const target = await startTarget({ cleanup, parentFolder });
  const folder = cleanup.temporaryFolder(parentFolder);
  const [result, authority] = [join(folder, 'findings.json'), join(folder, 'authority.pem')];
  writeFileSync(authority, target.endpoint.authorityPem);
  progress.show('testssl.sh is at work');
  const words = [
    ...['--quiet', '--color', '0', '--warnings', 'off', '--add-ca', authority],
    ...['--jsonfile', result, '--ip', '127.0.0.1', ...(isQuick ? quickParts : [])],
    `https://localhost:${target.public.port}/notifications`,
  ];
  const child = spawn(scanner, words, { cwd: folder, stdio: 'ignore', timeout: timeoutMs });
  cleanup.ownProcess(child);
  await once(child, 'exit');
  const exitCode = await target.stop();
  if (exitCode !== 0)
    throw new Error(`earshot ended with ${exitCode}:\n${target.log().slice(-2_000)}`);
  const findings = findingsSchema.parse(JSON.parse(readFileSync(result, 'utf8')));
  return {
    version: versionOf(scanner),
    severities: countSeverities(findings),
    judged: judgeFindings(findings),
  };
}

function countSeverities(findings: readonly Finding[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { severity } of findings) counts[severity] = (counts[severity] ?? 0) + 1;
  return counts;
}

function versionOf(scanner: string): string {
  const { stdout } = spawnSync(scanner, ['--version'], { encoding: 'utf8' });
  return /testssl(?:\.sh)?\s+(\S+)/.exec(stdout)?.[1] ?? 'unknown';
}

/** As text, ending with a line break. */
function render({ version, severities, judged }: ScanReport): string {
  const counts = Object.entries(severities).map(([severity, count]) => [severity, figure(count)]);
  const rows = judged.map(({ severity, id, finding, reason }) => [
    `${severity} ${id}`,
    finding.slice(0, 80),
    reason ?? 'must not be',
  ]);
  const parts = [
    `testssl.sh ${version}`,
    alignTable([['severity', 'findings'], ...counts]),
    rows.length === 0 ? 'Nothing of severity LOW or worse.' : alignTable(rows),
    judged.some(({ reason }) => reason === null)
      ? 'There are findings.'
      : 'Nothing was found that counts.',
  ];
  return `${parts.join('\n\n')}\n`;
}
