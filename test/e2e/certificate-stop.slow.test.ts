/** A first certificate: SIGTERM while the receiver waits for the authority, and several programs that order together. */
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { isComplete, itIfComplete } from '../helpers/thorough.ts';
import {
  type AcmeStep,
  type CertificateContext,
  openCertificateContext,
  savedSerial,
  shownSerial,
} from './certificate-context.ts';

const allSteps: AcmeStep[] = ['sign-me-up', 'order-plz', 'chalZ', 'finalize-order', 'certZ'];
const steps = isComplete ? allSteps : allSteps.filter((_, i) => i % 2 === 0);
const soonMs = 5_000;
const issued = { timeout: 20_000 };

/** Checks that the next start serves a certificate, with the same account, after one repeated order at most. */
async function checkNextStart(context: CertificateContext, step: string): Promise<void> {
  const { proxy, root, dataDir } = context;
  const { child, port, log } = await context.start();
  const shown = () => shownSerial(port, root);
  await expect.poll(shown, { ...issued, message: `${step}\n${log()}` }).not.toBeNull();
  // The served certificate is saved afterwards.
  await expect.poll(() => savedSerial(dataDir), { message: step }).toBe(await shown());
  expect(proxy.granted('sign-me-up'), step).toBe(1);
  expect(proxy.granted('finalize-order'), step).toBeLessThanOrEqual(2);
  expect(proxy.granted('order-plz'), step).toBeLessThanOrEqual(2);
  expect(log(), step).not.toContain('"level":"error"');
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

/** Number of processes that have a file open: the one with the lock, and those that wait for it. */
function openedBy(path: string): number {
  const hasOpen = (pid: string) => {
    try {
      const folder = `/proc/${pid}/fd`;
      return readdirSync(folder).some((fd) => readlinkSync(join(folder, fd)) === path);
    } catch {
      // The process has ended, or has closed the file, in between.
      return false;
    }
  };
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && hasOpen(pid)).length;
}

describe.skipIf(!hasPebble)('a first issue (needs pebble)', () => {
  it('is interrupted by SIGTERM at each step, and the next start orders again', async () => {
    const pebble = await startPebble();
    for (const step of steps) {
      const context = await openCertificateContext({ pebble });
      const reached = Promise.withResolvers<void>();
      const never = new Promise<void>(() => undefined);
      context.proxy.watch(({ path, moment }) => {
        if (moment !== 'after' || !path.startsWith(`/${step}`)) return undefined;
        reached.resolve();
        return never;
      });
      const { child, log } = await context.start();
      await reached.promise;
      const exit = once(child, 'exit');
      const began = performance.now();
      child.kill('SIGTERM');
      expect(await exit, step).toEqual([0, null]);
      expect(performance.now() - began, step).toBeLessThan(soonMs);
      expect(log(), step).not.toContain('"level":"error"');
      context.proxy.watch(() => undefined);
      await checkNextStart(context, step);
    }
  }, 120_000);

  itIfComplete(
    'is one order of all programs on one data directory, which all serve it',
    async () => {
      const context = await openCertificateContext({ challenge: 'tls-alpn-01' });
      const { proxy, root, dataDir } = context;
      const passes = Promise.withResolvers<void>();
      proxy.watch(({ path }) => (path.startsWith('/finalize-order') ? passes.promise : undefined));
      const first = await context.start();
      const second = await context.start({ EARSHOT_LISTEN: '127.0.0.1:0' });
      const renewals = [1, 2, 3].map(() => context.command(['certificate', 'renew']));
      const lock = join(dataDir, 'certificate.lock');
      await expect.poll(() => openedBy(lock), issued).toBe(4);
      passes.resolve();
      const results = await Promise.all(renewals.map((renewal) => renewal.ended));
      for (const { code, out, err } of results) expect(code, out + err).toBe(0);
      const saved = savedSerial(dataDir);
      expect(saved).not.toBeNull();
      const shown = () => Promise.all([first, second].map(({ port }) => shownSerial(port, root)));
      // A running receiver checks the file every ten seconds.
      await expect.poll(shown, issued).toEqual([saved, saved]);
      expect(allSteps.map(proxy.granted)).toEqual([
        1,
        1,
        expect.any(Number),
        1,
        expect.any(Number),
      ]);
    },
  );
});
