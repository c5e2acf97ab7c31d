/** SIGTERM to a receiver that waits for an answer of the authority. */
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { isComplete } from '../helpers/thorough.ts';
import { openCertificateContext } from './certificate-context.ts';
import { checkNextStart } from './certificate-kill.ts';
import type { AcmeStep } from './certificate-proxy.ts';

const allSteps: AcmeStep[] = ['sign-me-up', 'order-plz', 'chalZ', 'finalize-order', 'certZ'];
const steps = isComplete ? allSteps : allSteps.filter((_, i) => i % 2 === 0);
const soonMs = 5_000;

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
      await checkNextStart(context, `ended at ${step}`);
    }
  }, 120_000);
});
