/** `npm run attack -- scan`: testssl.sh against the public listener of its own receiver. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { alignTable, figure } from '../../bench/figures.ts';
import { type Benchmark, dirOption, flag } from '../../bench/harness.ts';
import { startTarget } from './target.ts';

const options = { quick: flag('only protocols, ciphers and headers'), dir: dirOption };

/** Protocols, cipher categories, forward secrecy, server preference, headers. */
const quickParts = ['-p', '-s', '-f', '-P', '-h'];

const timeoutMs = 600_000;

const findingsSchema = z.array(
  z.object({ id: z.string(), severity: z.string(), finding: z.string() }),
);

/** Returns the name of the installed program; null when it is not installed. */
export function findScanner(): string | null {
  const names = ['testssl', 'testssl.sh'];
  return names.find((name) => spawnSync(name, ['--version']).error === undefined) ?? null;
}

export const scan: Benchmark<typeof options> = {
  command: 'npm run attack -- scan',
  about: `Runs testssl.sh (Debian package testssl.sh) against the public listener of its own \`earshot start\`.
Every finding of severity LOW or worse needs an accepted reason; otherwise the exit code is 1.`,
  options,
  closing: `Exit code: 0 no findings without a reason, 1 findings, 2 wrong usage.

Examples:
  npm run attack -- scan              90 seconds
  npm run attack -- scan --quick`,
  async measure({ quick }, { cleanup, progress, folder: parentFolder }) {
    const scanner = findScanner();
    if (scanner === null) {
      throw new Error('testssl.sh is not installed. On Debian: apt-get install testssl.sh');
    }
    const target = await startTarget({ cleanup, parentFolder });
    const folder = cleanup.temporaryFolder(parentFolder);
    const [result, authority] = [join(folder, 'findings.json'), join(folder, 'authority.pem')];
    writeFileSync(authority, target.endpoint.authorityPem);
    progress.show('testssl.sh is running');
    const words = [
      ...['--quiet', '--color', '0', '--warnings', 'off', '--add-ca', authority],
      ...['--jsonfile', result, '--ip', '127.0.0.1', ...(quick ? quickParts : [])],
      `https://localhost:${target.public.port}/notifications`,
    ];
    const child = spawn(scanner, words, { cwd: folder, stdio: 'ignore', timeout: timeoutMs });
    cleanup.ownProcess(child);
    await once(child, 'exit');
    const exitCode = await target.stop();
    if (exitCode !== 0) {
      throw new Error(`earshot ended with ${exitCode}:\n${target.log().slice(-2_000)}`);
    }
    const findings = findingsSchema.parse(JSON.parse(readFileSync(result, 'utf8')));
    const version = versionOf(scanner);
    const severities = countSeverities(findings);
    const assessed = assessFindings(findings);
    const hasFailed = assessed.some(({ reason }) => reason === null);
    const counts = Object.entries(severities).map(([severity, count]) => [severity, figure(count)]);
    const rows = assessed.map(({ severity, id, finding, reason }) => [
      `${severity} ${id}`,
      finding.slice(0, 80),
      reason ?? 'no accepted reason',
    ]);
    return {
      // Number of findings of each severity, and the findings of LOW and worse.
      report: { version, severities, findings: assessed },
      text: [
        `testssl.sh ${version}`,
        alignTable([['severity', 'findings'], ...counts]),
        rows.length === 0 ? 'Nothing of severity LOW or worse.' : alignTable(rows),
        hasFailed
          ? 'There are findings without an accepted reason.'
          : 'No findings without an accepted reason.',
      ],
      hasFailed,
    };
  },
};

function countSeverities(findings: readonly Finding[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { severity } of findings) counts[severity] = (counts[severity] ?? 0) + 1;
  return counts;
}

function versionOf(scanner: string): string {
  const { stdout } = spawnSync(scanner, ['--version'], { encoding: 'utf8' });
  return /testssl(?:\.sh)?\s+(\S+)/.exec(stdout)?.[1] ?? 'unknown';
}

/** Finding in the JSON file of testssl.sh. */
interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

/** Severities that require a reason. */
const severitiesThatCount: readonly string[] = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL', 'FATAL'];

/** Reasons for findings about the scan's own certificate or a machine without a public name. */
const accepted: Readonly<Record<string, string>> = {
  cert_expirationStatus: 'the certificate of the scan is valid for 30 days',
  cert_notAfter: 'the certificate of the scan is valid for 30 days',
  cert_revocation:
    'the certificate of the scan has no revocation; real ones have that of their authority',
  DNS_CAArecord: 'localhost has no records',
};

interface AssessedFinding extends Finding {
  /** Null: not accepted. */
  readonly reason: string | null;
}

/** Returns the findings that need a reason, with that reason. */
export function assessFindings(findings: readonly Finding[]): AssessedFinding[] {
  return findings
    .filter(({ severity }) => severitiesThatCount.includes(severity))
    .map((one) => ({ ...one, reason: accepted[one.id] ?? null }));
}
