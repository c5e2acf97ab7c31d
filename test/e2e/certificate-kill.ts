/** Kills a receiver that is getting its first certificate, starts it again, and checks the result. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'vitest';
import { startPebble } from '../helpers/pebble.ts';
import type { SpawnedReceiver } from '../helpers/spawned-receiver.ts';
import { momentsAt } from '../helpers/thorough.ts';
import {
  type CertificateContext,
  openCertificateContext,
  savedSerial,
  shownSerial,
} from './certificate-context.ts';
import type { AcmeMoment } from './certificate-proxy.ts';

/** Steps of a first issue, as Pebble names them. */
export const stepsOfAnIssue = [
  ...['dir', 'sign-me-up', 'order-plz', 'my-order', 'authZ', 'chalZ', 'finalize-order', 'certZ'],
];

const requestsMax = 30;
const issued = { timeout: 20_000 };

export async function ended(child: ChildProcess): Promise<void> {
  const exit = child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null;
  child.kill('SIGKILL');
  await exit;
}

/** Checks after any kill: the next start serves a certificate, and nothing was created twice or lost. */
export async function checkNextStart(context: CertificateContext, killed: string): Promise<void> {
  const { proxy, root, dataDir } = context;
  const { child, port, log } = await context.start();
  const shown = () => shownSerial(port, root);
  await expect.poll(shown, { ...issued, message: `${killed}\n${log()}` }).not.toBeNull();
  // The served certificate is saved afterwards.
  await expect.poll(() => savedSerial(dataDir), { message: killed }).toBe(await shown());
  expect(proxy.granted('sign-me-up'), `accounts, ${killed}`).toBe(1);
  expect(proxy.granted('finalize-order'), `certificates, ${killed}`).toBe(1);
  // An order is lost when its answer is lost, or when nobody answered its challenge.
  expect(proxy.granted('order-plz'), `orders, ${killed}`).toBeLessThanOrEqual(2);
  expect(log(), killed).not.toContain('"level":"error"');
  await ended(child);
}

/** Kills at one moment; returns null when the certificate was served before that moment. */
async function killAt(
  { proxy, root, start }: CertificateContext,
  isTime: (at: AcmeMoment) => boolean,
): Promise<AcmeMoment | null> {
  const reached = Promise.withResolvers<AcmeMoment>();
  const started: Promise<SpawnedReceiver> = start();
  proxy.watch(async (at) => {
    if (!isTime(at)) return;
    const { child } = await started;
    await ended(child);
    reached.resolve(at);
    throw new Error('Nobody is there to be answered.');
  });
  const { child, port } = await started;
  const isShown = expect
    .poll(() => shownSerial(port, root), issued)
    .not.toBeNull()
    .then(() => null);
  const outcome = await Promise.race([reached.promise, isShown.catch(() => reached.promise)]);
  await ended(child);
  proxy.watch(() => undefined);
  return outcome;
}

/** Kills at each request in turn, until there are no more; returns the steps of these requests. */
export async function killEverywhere(): Promise<string[]> {
  const pebble = await startPebble();
  const steps: string[] = [];
  const kill = async (isTime: (at: AcmeMoment) => boolean): Promise<boolean> => {
    const context = await openCertificateContext({ pebble });
    const at = await killAt(context, isTime);
    if (at === null) return false;
    steps.push(stepOf(at));
    await checkNextStart(context, `killed ${at.moment} request ${at.number}, ${stepOf(at)}`);
    return true;
  };
  const moments = Array.from({ length: requestsMax }, (_, i) => i + 1).flatMap((number) =>
    momentsAt(number).map((moment) => ({ number, moment })),
  );
  for (const { number, moment } of moments) {
    if (!(await kill((one) => one.number === number && one.moment === moment))) break;
  }
  // The number of a request depends on how often an order was polled before, so a step may have been missed.
  for (const step of stepsOfAnIssue.filter((one) => !steps.includes(one))) {
    await kill((one) => stepOf(one) === step && one.moment === 'before');
  }
  return steps;
}

const stepOf = ({ path }: AcmeMoment) => path.split('/')[1] ?? '';
