/** testssl.sh against the HTTPS listener. */
import { expect, it } from 'vitest';
import { runAttack } from './attack-context.ts';
import { assessFindings, findScanner } from './scan.ts';

const scanner = findScanner();
const name = `testssl.sh finds no problem${scanner === null ? ' (skipped: testssl.sh is not installed)' : ''}`;

it.skipIf(scanner === null)(name, { timeout: 400_000 }, async () => {
  const { exitCode, report, stderr } = await runAttack('scan', '--quick');
  expect(stderr).toBe('');
  expect(report.findings.filter(({ reason }: { reason: unknown }) => reason === null)).toEqual([]);
  expect(exitCode).toBe(0);
  expect(report.severities.OK).toBeGreaterThan(10);
});

it('findings without an accepted reason fail the scan', () => {
  const finding = { id: 'LUCKY13', severity: 'LOW', finding: 'potentially vulnerable' };
  const known = { id: 'DNS_CAArecord', severity: 'LOW', finding: '--' };
  const harmless = { id: 'TLS1_3', severity: 'OK', finding: 'offered' };
  expect(assessFindings([finding, known, harmless]).map(({ reason }) => reason === null)).toEqual([
    true,
    false,
  ]);
});
