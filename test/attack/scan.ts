/** `npm run attack -- scan`: testssl.sh against the public listener of its own receiver. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { renderTable } from '../../bench/figures.ts';
import { defineBenchmark } from '../../bench/harness.ts';
import { startTarget } from './attack.ts';

/** Protocols, cipher categories, forward secrecy, server preference, headers. */
const quickParts = ['-p', '-s', '-f', '-P', '-h'];

/** Name of the installed program; undefined when it is not installed. */
export const scanner = ['testssl', 'testssl.sh'].find(
  (name) => spawnSync(name, ['--version']).error === undefined,
);

/** Severities that do not require a reason. */
const harmless = ['OK', 'INFO', 'WARN', 'DEBUG'];

/** Reasons for findings about the scan's own certificate or a machine without a public name. */
const accepted: Readonly<Record<string, string>> = {
  cert_expirationStatus: 'the certificate of the scan is valid for 30 days',
  cert_notAfter: 'the certificate of the scan is valid for 30 days',
  cert_revocation: 'the certificate of the scan has no revocation',
  DNS_CAArecord: 'localhost has no records',
};

export const benchmark = defineBenchmark({
  command: 'npm run attack -- scan',
  about: `Runs testssl.sh (Debian package testssl.sh) against the public listener of its own \`earshot start\`.
Every finding of severity LOW or worse needs an accepted reason; otherwise the exit code is 1.`,
  options: {},
  refuse: () => (scanner === undefined ? 'testssl.sh is not installed.' : null),
  async measure({ quick }, context) {
    const target = await startTarget(context);
    const folder = context.cleanup.temporaryFolder(context.folder);
    const [result, authority] = [join(folder, 'findings.json'), join(folder, 'authority.pem')];
    writeFileSync(authority, target.address.authorityPem ?? '');
    context.progress.show('testssl.sh is running');
    const words = [
      ...['--quiet', '--color', '0', '--warnings', 'off', '--add-ca', authority],
      ...['--jsonfile', result, '--ip', '127.0.0.1', ...(quick ? quickParts : [])],
      `https://localhost:${target.port}/notifications`,
    ];
    const how = { cwd: folder, stdio: 'ignore', timeout: 600_000 } as const;
    const child = spawn(scanner ?? '', words, how);
    context.cleanup.ownProcess(child);
    await once(child, 'exit');
    await target.stop();
    // Format of testssl.sh.
    const findings: { id: string; severity: string; finding: string }[] = JSON.parse(
      readFileSync(result, 'utf8'),
    );
    const grave = findings.filter(({ severity }) => !harmless.includes(severity));
    const counts = Object.entries(Object.groupBy(findings, ({ severity }) => severity));
    return {
      setting: quick ? 'protocols, ciphers and headers' : 'all checks',
      figures: { counts: Object.fromEntries(counts.map(([name, some]) => [name, some?.length])) },
      text: [
        renderTable(counts, [
          ['severity', ([name]) => name],
          ['findings', ([, some]) => some?.length ?? 0],
        ]),
      ],
      faults: grave.filter(({ id }) => !(id in accepted)).map((one) => JSON.stringify(one)),
    };
  },
});
