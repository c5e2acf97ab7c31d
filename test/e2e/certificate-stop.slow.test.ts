/** A first certificate: SIGTERM while the receiver waits for the authority. */
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { isComplete } from '../helpers/thorough.ts';
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
  const { port, log, end } = await context.start();
  const shown = () => shownSerial(port, root);
  await expect.poll(shown, { ...issued, message: `${step}\n${log()}` }).not.toBeNull();
  // The served certificate is saved afterwards.
  await expect.poll(() => savedSerial(dataDir), { message: step }).toBe(await shown());
  expect(proxy.granted('sign-me-up'), step).toBe(1);
  expect(proxy.granted('finalize-order'), step).toBeLessThanOrEqual(2);
  expect(proxy.granted('order-plz'), step).toBeLessThanOrEqual(2);
  expect(log(), step).not.toContain('"level":"error"');
  await end('SIGKILL');
}

describe.skipIf(!hasPebble)('a first issue (needs pebble)', () => {
  it('is interrupted by SIGTERM at each step, and the next start orders again', async () => {
    const pebble = await startPebble();
    for (const step of steps) {
      const context = await openCertificateContext(pebble);
      const reached = Promise.withResolvers<void>();
      const never = new Promise<void>(() => undefined);
      context.proxy.watch(({ path, moment }) => {
        if (moment !== 'after' || !path.startsWith(`/${step}`)) return undefined;
        reached.resolve();
        return never;
      });
      const { end, log } = await context.start();
      await reached.promise;
      const began = performance.now();
      expect(await end(), step).toEqual([0, null]);
      expect(performance.now() - began, step).toBeLessThan(soonMs);
      expect(log(), step).not.toContain('"level":"error"');
      context.proxy.watch(() => undefined);
      await checkNextStart(context, step);
    }
  }, 120_000);
});
