/** The status of a running receiver: readiness to accept notifications, and the state of its parts. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readState, writeState } from '../../../src/features/certificate/renewal.ts';
import { readCertificateStatus } from '../../../src/features/certificate/status.ts';
import { createReadiness } from '../../../src/receiver/serve.ts';
import { notification } from '../../helpers/deliveries.ts';

import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openServed } from '../../receiver/served-context.ts';

const ready = { status: 200, text: 'ready' };

describe('a running receiver', () => {
  it('is not ready while the store cannot write, and ready again when it can', async () => {
    const { ask, passUs, breakStore, repairStore } = await openServed();
    breakStore();
    passUs(10_000_000);
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'store' });
    const { receiver } = JSON.parse((await ask('/api/status')).text);
    expect(receiver).toMatchObject({ pid: process.pid, refusing: expect.stringMatching(/\.$/) });
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

  it('requires a valid certificate, except for plain HTTP', async () => {
    const expired = { ...valid, notAfterUs: 1 };
    const early = { ...valid, notBeforeUs: 9_000_000 };
    const reasons = [undefined, valid, null, expired, early].map((certificate) =>
      createReadiness({
        ...{ store: writable, nowUs },
        certificate: certificate === undefined ? undefined : { served: () => certificate },
      })(),
    );
    const refused = ['certificate'];
    expect(await Promise.all(reasons)).toEqual([[], [], refused, refused, refused]);
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
  const certificate = () => readCertificateStatus(tls, dataDir).status;
  const untried = { lastAttemptAtUs: null, lastSuccessAtUs: null, lastFailure: null };
  expect(certificate()).toEqual({ notAfterUs: null, lifetimeUs: null, ...untried });
  const lastFailure = { text: 'No such name. Correct it.' };
  const failed = { failures: 1, lastAttemptAtUs: atUs, lastFailure };
  await writeState(dataDir, { ...readState(dataDir, order), ...failed });
  expect(certificate()).toMatchObject({
    notAfterUs: null,
    lastAttemptAtUs: atUs,
    lastFailure: 'No such name. Correct it.',
  });
});
