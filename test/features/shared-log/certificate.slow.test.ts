import { join } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { app } from '../../../src/app.ts';
import { startChallengeListener } from '../../../src/features/certificate/challenge.ts';
import { readCertificate } from '../../../src/features/certificate/renewal.ts';
import { createFileSync } from '../../../src/features/shared-log/shared-files.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { startReceiver } from '../certificate/acme-context.ts';
import { createDatabase, hasPostgres, openLog, useServer } from './shared-log-context.ts';

describe.runIf(hasPostgres && hasPebble)('the certificate of several receivers', () => {
  const server = useServer();

  it('is ordered by one, while another one answers the challenge, and served by all', async () => {
    const url = await createDatabase(server());
    const pebble = await startPebble();
    // The other receiver: it has the port that the authority asks, and orders nothing.
    const other = join(temporaryDirectory(), 'data');
    const log = await openLog({ url });
    const sync = createFileSync(other, log.files, app);
    const stop = new AbortController();
    const syncing = (async () => {
      for await (const _ of setInterval(1_000, undefined, { signal: stop.signal })) await sync();
    })().catch(() => undefined);
    onTestFinished(async () => {
      stop.abort();
      await syncing;
    });
    const listen = (port: number) => ({ httpListen: { host: '127.0.0.1', port } });
    const listener = await startChallengeListener(other, listen(pebble.ports.http));
    onTestFinished(() => listener.close(0));
    const sharedLog = { urls: [url], needsStandby: false, nodeName: 'first' };
    const first = await startReceiver(pebble, { sharedLog, ...listen(await freePort()) });
    await expect.poll(first.serial, { timeout: 30_000 }).not.toBeNull();
    const serial = await first.serial();
    await expect.poll(() => readCertificate(other)?.cert ?? null).not.toBeNull();
    // A receiver that starts later orders none.
    const next = join(temporaryDirectory(), 'data');
    await createFileSync(next, log.files, app)();
    const where = { ...listen(await freePort()), dataDir: next };
    const second = await startReceiver(pebble, { sharedLog, ...where });
    expect(second.receiver.hasCertificate).toBe(true);
    expect(await second.serial()).toBe(serial);
  });
});
