/** When a receiver is ready, and what it says is in the way when it is not. */
import { describe, expect, it } from 'vitest';
import { createReadiness } from '../../src/cli/start/console.ts';
import { notification } from '../helpers/deliveries.ts';
import { openServed } from './served-world.ts';

const dayUs = 86_400_000_000;
const ready = { status: 200, text: 'ready' };

describe('a running receiver', () => {
  it('is alive and ready', async () => {
    const { ask } = await openServed();
    expect(await ask('/healthz')).toEqual({ status: 200, text: 'ok' });
    expect(await ask('/readyz')).toEqual(ready);
  });

  it('is not ready while the store cannot write, and ready again when it can', async () => {
    const { ask, passUs, breakStore, mendStore } = await openServed();
    breakStore();
    passUs(10_000_000);
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'store' });
    expect(await ask('/healthz')).toMatchObject({ status: 200 });
    mendStore();
    await expect.poll(() => ask('/readyz')).toEqual(ready);
  });

  it('is not ready without its writer, however fresh the last commit is', async () => {
    const { ask, post, store } = await openServed();
    const body = JSON.stringify(notification(1));
    expect(await post('/notifications/alps', body)).toBe(200);
    await store.close();
    expect(await ask('/readyz')).toEqual({ status: 503, text: 'writer' });
  });

  it('is not ready before its certificate begins, and once it has ended', async () => {
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
  const valid = { notBefore: new Date(0), notAfter: new Date(10_000) };
  const nowUs = () => 5_000_000;

  it('names a writer that does not answer, and everything else that is wrong', async () => {
    const store = { ...writable, checkWritable: () => new Promise<never>(() => undefined) };
    const certificate = { served: () => null };
    const readiness = createReadiness({ store, certificate, nowUs, timeoutMs: 20 });
    expect(await readiness()).toEqual(['writer', 'certificate']);
  });

  it('asks for no certificate where there is plain HTTP', async () => {
    const served = (certificate: typeof valid | null | undefined) =>
      createReadiness({ store: writable, certificate: { served: () => certificate }, nowUs })();
    expect(await served(undefined)).toEqual([]);
    expect(await served(valid)).toEqual([]);
    expect(await served(null)).toEqual(['certificate']);
  });
});
