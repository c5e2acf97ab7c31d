/** SIGKILL of a receiver that gets its first certificate: as each file appears, and at random moments. */
import { mkdirSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { isThorough } from '../helpers/thorough.ts';
import { openCertificateContext, savedSerial } from './certificate-context.ts';
import { checkNextStart, ended } from './certificate-kill.ts';

const kills = 10;
/** Approximate duration of an issue, from its first request on. */
const issueMs = 1_500;

describe.skipIf(!hasPebble)('a first issue (needs pebble)', () => {
  it('has the usual result after a kill as each of its files appears', async () => {
    const pebble = await startPebble();
    const files = ['state.json', 'challenge.json', 'certificate.json'];
    for (const file of files) {
      const context = await openCertificateContext({ pebble });
      const folder = join(context.dataDir, 'acme');
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const appeared = Promise.withResolvers<void>();
      // Files are written under a temporary name and renamed: their names appear when they are complete.
      const watcher = watch(folder, (_event, name) => {
        const isTemporary = /\.json\.\d+$/.test(name ?? '');
        if (name?.startsWith(file) === true && !isTemporary) appeared.resolve();
      });
      onTestFinished(() => watcher.close());
      const { child } = await context.start();
      await appeared.promise;
      await ended(child);
      watcher.close();
      await checkNextStart(context, `killed when ${file} appeared`);
    }
  }, 120_000);

  if (!isThorough) return;

  it(`has the usual result after kills at ${kills} random moments`, async () => {
    const pebble = await startPebble();
    const random = createRandom(20_261_120);
    let cut = 0;
    for (let round = 0; round < kills; round += 1) {
      const context = await openCertificateContext({ pebble });
      const begun = Promise.withResolvers<void>();
      context.proxy.watch(() => begun.resolve());
      const { child } = await context.start();
      await begun.promise;
      // The random delay is the moment of the kill; the test waits for no condition here.
      const pauseMs = random.integer(0, issueMs);
      await delay(pauseMs);
      await ended(child);
      if (savedSerial(context.dataDir) === null) cut += 1;
      await checkNextStart(context, `killed after ${pauseMs} ms`);
    }
    expect(cut).toBeGreaterThan(0);
  }, 120_000);
});
