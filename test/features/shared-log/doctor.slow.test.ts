import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { Io } from '../../../src/core/cli/io.ts';
import type { DoctorSettings } from '../../../src/core/doctor/steps.ts';
import { runSteps } from '../../../src/features/doctor/command.ts';
import { stepsOf } from '../../../src/features/shared-log/doctor.ts';
import { expectRefused } from '../../helpers/refusals.ts';
import { createDatabase, hasPostgres, openLog, useServer } from './shared-log-context.ts';
import { setStandby, startStandby } from './standby.ts';

async function findingsOf(url: string, needsStandby = false) {
  const serve = { sharedLog: { urls: [url], needsStandby, nodeName: null } };
  const nowUs = () => Date.now() * 1_000;
  const io = { newId: randomUUID, random: Math.random, nowUs } as Io;
  const steps = await stepsOf({ serve } as unknown as DoctorSettings, io, {} as never);
  const findings = [];
  for await (const { level, text } of runSteps(steps, new AbortController().signal)) {
    findings.push(`${level}: ${text}`);
  }
  return findings;
}

describe.runIf(hasPostgres)('the doctor with a shared log', () => {
  const server = useServer();

  it('reports the database, its standby, and receivers that do not report', async () => {
    const url = await createDatabase(server());
    const log = await openLog({ url });
    const none = { refusing: null, fault: null, freeBytes: null, credentials: '' };
    const facts = { version: '1', startedAtUs: 0, ...none };
    const report = { id: randomUUID(), name: 'receiver-1', applied: 0, facts };
    await log.report(report);
    expect(await findingsOf(url)).toEqual([
      expect.stringMatching(/^ok: PostgreSQL 15\.\d+ accepts entries\.$/),
      expect.stringMatching(/^warning: Notifications can be lost with the database/),
      'ok: Receivers: receiver-1.',
    ]);
    expect(await findingsOf(url, true)).toEqual([
      expect.stringMatching(/^critical: .*EARSHOT_LOG_SYNC is standby\.$/),
    ]);
    // A copy of a data directory: the receiver that has started later.
    await log.report({ ...report, facts: { ...facts, startedAtUs: 2 } });
    await expectRefused(log.report(report), 'conflict');
    await startStandby(server(), 'near');
    await setStandby(server(), 'near');
    expect(await findingsOf(url, true)).toContain('ok: The database has a synchronous standby.');
    expect(await findingsOf(url)).toContainEqual(
      expect.stringMatching(/^warning: Notifications can be lost/),
    );
    await setStandby(server(), '');
  });

  it('reports why a database cannot be used, without its password', async () => {
    const wrong = new URL(server().url('missing'));
    wrong.password = 'secret';
    const findings = await findingsOf(wrong.href);
    expect(findings).toEqual([expect.stringMatching(/^critical: The database of the shared log/)]);
    expect(JSON.stringify(findings)).not.toContain('secret');
  });
});
