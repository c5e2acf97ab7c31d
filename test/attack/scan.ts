/** `npm run attack -- scan`: testssl.sh against the public listener of a receiver of our own. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { alignTable, figure } from '../../bench/figures.ts';
import { type Benchmark, dirOption, flag } from '../../bench/harness.ts';
import { startTarget } from './target.ts';

const options = { quick: flag('protocols, ciphers and headers alone'), dir: dirOption };

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

export const scan: Benchmark<typeof options> = {
  command: 'npm run attack -- scan',
  about: `Runs testssl.sh (Debian's package of that name) against the public listener of an \`earshot start\` of its own.
Every finding of severity LOW or worse must be one that is known, with a reason; else the exit code is 1.`,
  options,
  closing: `Exit code: 0 nothing found, 1 something, 2 wrong usage.

Examples:
  npm run attack -- scan              a minute and a half
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
    progress.show('testssl.sh is at work');
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
    const judged = judgeFindings(findings);
    const hasFailed = judged.some(({ reason }) => reason === null);
    const counts = Object.entries(severities).map(([severity, count]) => [severity, figure(count)]);
    const rows = judged.map(({ severity, id, finding, reason }) => [
      `${severity} ${id}`,
      finding.slice(0, 80),
      reason ?? 'must not be',
    ]);
    return {
      // How many findings there are of each severity, and those of LOW and worse.
      report: { version, severities, judged },
      text: [
        `testssl.sh ${version}`,
        alignTable([['severity', 'findings'], ...counts]),
        rows.length === 0 ? 'Nothing of severity LOW or worse.' : alignTable(rows),
        hasFailed ? 'There are findings.' : 'Nothing was found that counts.',
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

/** One finding of its JSON file. */
interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

/** From this severity on a finding needs a reason. */
const severitiesThatCount: readonly string[] = ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL', 'FATAL'];

/** Of the certificate that the scan makes for itself, or of a machine without a public name. */
const accepted: Readonly<Record<string, string>> = {
  cert_expirationStatus: 'the certificate of the scan lives for 30 days',
  cert_notAfter: 'the certificate of the scan lives for 30 days',
  cert_revocation:
    'nobody revokes the certificate of the scan; real ones carry what their authority gives',
  DNS_CAArecord: 'localhost has no records',
};

interface JudgedFinding extends Finding {
  /** Null: it must not be. */
  readonly reason: string | null;
}

/** Those that need a reason, with it. */
export function judgeFindings(findings: readonly Finding[]): JudgedFinding[] {
  return findings
    .filter(({ severity }) => severitiesThatCount.includes(severity))
    .map((one) => ({ ...one, reason: accepted[one.id] ?? null }));
}
