/** The status of a running receiver: readiness to accept notifications, and the state of its parts. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { UnreadyReason } from '../../../src/core/api/app.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { watchProbes } from '../../../src/features/alerts/watch-probes.ts';
import { readState, writeState } from '../../../src/features/certificate/acme-state.ts';
import { createReadiness } from '../../../src/receiver/console.ts';
import { serveStatus } from '../../../src/receiver/serve.ts';
import { notification } from '../../helpers/deliveries.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { runningJobs } from '../../helpers/running-jobs.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openServed } from '../../receiver/served-context.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';

async function openStatus(reasons: readonly UnreadyReason[]) {
  const { store, dataDir } = await openSqliteStore();
  const broken = {
    ...store,
    checkWritable: () => Promise.reject(new AppError('unavailable', 'The disk is full.')),
  };
  const config = {
    ...{ dataDir, index: false, tls: { kind: 'off' as const }, trustedProxies: [], console: null },
    ...{ listen: { host: '127.0.0.1', port: 0 }, publicUrl: undefined, logLevel: 'warn' as const },
    ...{ credentials: { source: 'variables' as const, pairs: [] }, diskReserveBytes: undefined },
    sharedLog: null,
  };
  let now = nowUs;
  const served = serveStatus(
    config,
    { store: broken, readiness: async () => reasons, log: silentLog },
    { nowUs: () => now },
  );
  return {
    ...served,
    pass: (us: number) => {
      now += us;
    },
  };
}

describe('a receiver', () => {
  it('accepts notifications since its start, and has no optional parts by default', async () => {
    const { status, setBackgroundJobs, pass } = await openStatus([]);
    pass(60_000_000);
    expect(await status()).toMatchObject({
      ...{ version: 'unknown', sinks: [], behindProxy: true, failures: [] },
      receiver: {
        startedAtUs: nowUs,
        pid: null,
        refusing: null,
        queue: { bytes: 0, bytesMax: 2 ** 26 },
      },
    });
    setBackgroundJobs(
      runningJobs({
        version: '1.2.3',
        deliveryState: () => ({ names: ['act'], fault: 'It is broken.' }),
        summaryMode: async () => 'digest',
        comparisonOff: null,
        backupEveryHours: 24,
      }),
    );
    pass(5_000_000);
    expect(await status()).toMatchObject({
      version: '1.2.3',
      sinks: [{ name: 'act', isSetUp: true, fault: 'It is broken.' }],
      summaries: { mode: 'digest' },
      backups: { everyHours: 24 },
    });
  });

  it.each<[UnreadyReason, string]>([
    ['store', 'The disk is full.'],
    ['writer', 'The database writer does not answer.'],
    ['certificate', 'There is no valid certificate.'],
  ])('reports that it is not ready because of its %s', async (reason, words) => {
    const { status } = await openStatus([reason]);
    const { receiver, parts } = await status();
    expect(receiver).toMatchObject({ refusing: words });
    expect(parts[0]).toMatchObject({
      level: 'critical',
      text: `Notifications are refused: ${words}`,
    });
  });
});

const dayUs = 86_400_000_000;
const ready = { status: 200, text: 'ready' };

describe('a running receiver', () => {
  it('is not ready while the store cannot write, and ready again when it can', async () => {
    const { ask, passUs, breakStore, repairStore } = await openServed();
    breakStore();
    passUs(10_000_000);
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'store' });
    expect(await ask('/healthz')).toMatchObject({ status: 200 });
    repairStore();
    await expect.poll(() => ask('/readyz')).toEqual(ready);
  });

  it('is not ready without its writer, however recent the last commit is', async () => {
    const { ask, post, store } = await openServed();
    const body = JSON.stringify(notification(1));
    expect(await post('/notifications/alps', body)).toBe(200);
    await store.close();
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'writer' });
  });

  it('is not ready before its certificate is valid, and after it has expired', async () => {
    const { ask, passUs } = await openServed();
    passUs(-dayUs);
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'certificate' });
    passUs(dayUs);
    expect(await ask('/readyz')).toEqual(ready);
    passUs(31 * dayUs);
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'certificate' });
  });
});

describe('readiness', () => {
  const writable = { checkWritable: async () => undefined, isWriterRunning: () => true };
  const valid = { cert: '', key: '', notBeforeUs: 0, notAfterUs: 10_000_000 };
  const nowUs = () => 5_000_000;

  it('names a writer that does not answer, and every other problem', async () => {
    const store = { ...writable, checkWritable: () => new Promise<never>(() => undefined) };
    const certificate = { served: () => null };
    const readiness = createReadiness({ store, certificate, nowUs, timeoutMs: 20 });
    expect(await readiness()).toEqual(['writer', 'certificate']);
  });

  it('requires no certificate for plain HTTP', async () => {
    const served = (certificate: typeof valid | null | undefined) =>
      createReadiness({ store: writable, certificate: { served: () => certificate }, nowUs })();
    expect(await served(undefined)).toEqual([]);
    expect(await served(valid)).toEqual([]);
    expect(await served(null)).toEqual(['certificate']);
  });
});

const order = { directoryUrl: 'https://authority.example/dir', host: 'earshot.example.org' };
const atUs = 1_795_000_000_000_000;

it('contains the results of the attempts for a first certificate', async () => {
  const dataDir = temporaryDirectory();
  mkdirSync(join(dataDir, 'acme'), { mode: 0o700 });
  const tls = {
    ...({ kind: 'acme', ...order, email: undefined, challenge: 'http-01' } as const),
    ...{ httpListen: { host: '127.0.0.1', port: 1 }, extraCaPem: undefined, eab: undefined },
  };
  const intake = { checkWritable: async () => undefined };
  const { certificate } = watchProbes({ dataDir, tls }, intake);
  const untried = { lastAttemptAtUs: null, lastSuccessAtUs: null, lastFailure: null };
  expect(await certificate()).toEqual({ notAfterUs: null, lifetimeUs: null, ...untried });
  const lastFailure = { text: 'No such name. Correct it.', link: null };
  const failed = { failures: 1, lastAttemptAtUs: atUs, lastFailure };
  await writeState(dataDir, { ...readState(dataDir, order), ...failed });
  expect(await certificate()).toMatchObject({
    notAfterUs: null,
    lastAttemptAtUs: atUs,
    lastFailure: 'No such name. Correct it.',
  });
});
