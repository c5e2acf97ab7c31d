/** What a running receiver serves while its certificate, its name or its authority changes. */
import { describe, expect, it, vi } from 'vitest';
import { hasPebble, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { dayUs, minuteUs, openProgram, watchRequests } from './pebble-world.ts';
import {
  createVerifyingClient,
  handshake,
  servedSerial,
  startReceiver,
  untilSaved,
} from './receiver-world.ts';

const soon = { timeout: 10_000, interval: 10 };
const failed = { level: 'error', message: expect.stringContaining('what is served stays in use') };

/** A receiver with its first certificate, saved. */
async function withCertificate(pebble: Pebble) {
  const receiver = await startReceiver(pebble);
  await untilSaved(receiver);
  return { ...receiver, first: await servedSerial(receiver.port) };
}

describe.skipIf(!hasPebble)('a running receiver (needs pebble)', () => {
  it('takes up what another program has got, without an order of its own', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const { port, dataDir, clock, first } = await withCertificate(pebble);
    // It has no port of its own: the receiver answers for it.
    const openListener = async () => undefined;
    const other = openProgram(pebble, { dataDir, clock, openListener });
    // The receiver may be asking the authority for advice at this moment.
    await vi.waitFor(
      async () => expect((await other.look('anyway')).outcome).toBe('renewed'),
      soon,
    );
    await vi.waitFor(async () => expect(await servedSerial(port)).not.toBe(first), soon);
    expect(await createVerifyingClient(port, await pebble.readRoot())()).toBe(200);
    expect(requests.orders()).toBe(2);
  });

  it('tries at once for another name, and serves the old certificate until it has that', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const { dataDir, clock, first, close } = await withCertificate(pebble);
    await close();
    await pebble.setAddress('127.0.0.2');
    const publicHost = 'other.example.org';
    const { port, lines } = await startReceiver(pebble, { dataDir, clock, publicHost });
    expect(await servedSerial(port)).toBe(first);
    await vi.waitFor(() => expect(lines).toContainEqual(expect.objectContaining(failed)), soon);
    expect(requests.orders()).toBe(2);
    expect(await servedSerial(port)).toBe(first);
    await pebble.setAddress('127.0.0.1');
    clock.advance(minuteUs);
    const isNew = async () => expect(await servedSerial(port)).not.toBe(first);
    await vi.waitFor(isNew, soon);
    const { certificate } = await handshake(port);
    expect(certificate.subjectaltname).toBe(`DNS:${publicHost}`);
  });

  it('tells of each failure once, and of the same one again after a success', async () => {
    const pebble = await startPebble();
    const { port, dataDir, clock, lines, first } = await withCertificate(pebble);
    const failures = () => lines.filter(({ level }) => level === 'error').length;
    const failOnce = async (count: number) => {
      await pebble.stop();
      clock.advance(4 * 365 * dayUs);
      await vi.waitFor(() => expect(failures()).toBe(count), soon);
    };
    await failOnce(1);
    await pebble.start();
    clock.advance(minuteUs);
    await untilSaved({ dataDir, clock });
    expect(await servedSerial(port)).not.toBe(first);
    await failOnce(2);
    clock.advance(2 * minuteUs);
    await vi.waitFor(() => expect(failures()).toBeGreaterThanOrEqual(3), soon);
    expect(failures()).toBe(3);
  });
});
