/** Kills a receiver that is getting its first certificate, starts it again, and checks the result. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';
import { type CertificateContext, savedSerial, shownSerial } from './certificate-context.ts';

const issued = { timeout: 20_000 };

export async function ended(child: ChildProcess): Promise<void> {
  const exit = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
  child.kill('SIGKILL');
  await exit;
}

/** Checks after any kill: the next start serves a certificate, with the same account. */
export async function checkNextStart(context: CertificateContext, killed: string): Promise<void> {
  const { proxy, root, dataDir } = context;
  const { child, port, log } = await context.start();
  const shown = () => shownSerial(port, root);
  await expect.poll(shown, { ...issued, message: `${killed}\n${log()}` }).not.toBeNull();
  // The served certificate is saved afterwards.
  await expect.poll(() => savedSerial(dataDir), { message: killed }).toBe(await shown());
  expect(proxy.granted('sign-me-up'), `accounts, ${killed}`).toBe(1);
  // An interrupted order is ordered again.
  expect(proxy.granted('finalize-order'), `certificates, ${killed}`).toBeLessThanOrEqual(2);
  expect(proxy.granted('order-plz'), `orders, ${killed}`).toBeLessThanOrEqual(2);
  expect(log(), killed).not.toContain('"level":"error"');
  await ended(child);
}
