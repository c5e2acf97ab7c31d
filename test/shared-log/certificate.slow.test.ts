import { join } from 'node:path';
import { setInterval } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createFileSync } from '../../src/cli/shared-files.ts';
import { openChallengeFolder, startChallengeListener } from '../../src/tls/acme/challenge.ts';
import { openAcmeFolder } from '../../src/tls/acme/state.ts';
import { freePort } from '../helpers/free-ports.ts';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { servedSerial, startReceiver } from '../tls/acme/receiver-context.ts';
import { createDatabase, hasPostgres, openLog, useServer } from './shared-log-context.ts';

describe.runIf(hasPostgres && hasPebble)('the certificate of several receivers', () => {
  const server = useServer();

  it('is ordered by one, while another one answers the challenge, and served by all', async () => {
    const url = await createDatabase(server());
    const pebble = await startPebble();
    // The other receiver: it has the port that the authority asks, and orders nothing.
    const other = join(temporaryDirectory(), 'data');
    const log = await openLog({ url });
    const sync = createFileSync(other, log.files);
    const stop = new AbortController();
    const syncing = (async () => {
      for await (const _ of setInterval(1_000, undefined, { signal: stop.signal })) await sync();
    })().catch(() => undefined);
    onTestFinished(async () => {
      stop.abort();
      await syncing;
    });
    const listen = { host: '127.0.0.1', port: pebble.ports.http };
    const challenges = openChallengeFolder(other);
    const listener = await startChallengeListener({ listen, challenges });
    onTestFinished(() => listener.close(0));
    const sharedLog = { urls: [url], needsStandby: false, nodeName: 'first' };
    const first = await startReceiver(pebble, { sharedLog, httpPort: await freePort() });
    await expect.poll(() => servedSerial(first.port), { timeout: 30_000 }).not.toBeNull();
    const serial = await servedSerial(first.port);
    await expect
      .poll(async () => (await openAcmeFolder(other).readCertificate())?.cert ?? null)
      .not.toBeNull();
    // A receiver that starts later orders none.
    const next = join(temporaryDirectory(), 'data');
    await createFileSync(next, log.files)();
    const httpPort = await freePort();
    const second = await startReceiver(pebble, { sharedLog, httpPort, dataDir: next });
    expect(second.receiver.hasCertificate).toBe(true);
    expect(await servedSerial(second.port)).toBe(serial);
  });
});
