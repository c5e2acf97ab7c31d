/** A receiver without a certificate obtains one, with both challenges, and serves it immediately. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, vi } from 'vitest';
import { hasPebble, leaveAccount, type Pebble, startPebble } from '../../helpers/pebble.ts';
import {
  createClock,
  dayUs,
  host,
  it,
  minuteUs,
  openProgram,
  watchRequests,
} from './pebble-context.ts';
import {
  createVerifyingClient,
  handshake,
  servedSerial,
  startReceiver,
  untilSaved,
} from './receiver-context.ts';

const isServed = 'reloaded certificate';

const soon = { timeout: 20_000, interval: 20 };

/** Returns all files and folders in a folder, with their permission bits. */
function modesBelow(folder: string): [string, number][] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const own: [string, number] = [entry.name, statSync(path).mode & 0o777];
    return entry.isDirectory() ? [own, ...modesBelow(path)] : [own];
  });
}

describe.skipIf(!hasPebble)('a receiver without a certificate (needs pebble)', () => {
  it.each(['http-01', 'tls-alpn-01'] as const)(
    'obtains one by %s, with half of all nonces refused, and serves it without a restart',
    async (challenge) => {
      const pebble = await startPebble({ nonceReject: 50 });
      const requests = watchRequests(pebble);
      // Nothing listens at the address of the name, so that the state before the certificate can be checked.
      await pebble.setAddress('127.0.0.2');
      const receiver = await startReceiver(pebble, { challenge });
      const { port, dataDir, clock, lines, close } = receiver;
      for (const protocols of [['http/1.1'], ['acme-tls/1'], ['h2']]) {
        await expect(handshake(port, { protocols })).rejects.toThrow();
      }
      await vi.waitFor(() => expect(lines.some(({ level }) => level === 'error')).toBe(true), soon);
      expect(await servedSerial(port)).toBeNull();
      await pebble.setAddress('127.0.0.1');
      clock.advance(dayUs);
      await vi.waitFor(async () => expect(await servedSerial(port)).not.toBeNull(), soon);
      const ask = createVerifyingClient(port, await pebble.readRoot());
      expect(await ask()).toBe(200);
      const { certificate } = await handshake(port);
      expect(certificate).toMatchObject({ subjectaltname: `DNS:${host}`, nistCurve: 'P-256' });
      expect(requests.finalized()).toBeGreaterThanOrEqual(1);
      // Files are written in a folder `.new-…` and then moved: now all writes are complete.
      await untilSaved(receiver);
      await close();
      const acme = join(dataDir, 'acme');
      expect(statSync(acme).mode & 0o777).toBe(0o700);
      const modes = modesBelow(acme);
      const names = modes.map(([name]) => name);
      expect(names).not.toContain('order.json');
      expect(names).toEqual(expect.arrayContaining(['certificate.json', 'renewal.json']));
      for (const [name, mode] of modes) expect([name, mode]).toEqual([name, 0o600]);
    },
  );

  it('makes its answers to challenges readable only for the owner', async ({ pebble }) => {
    const { dataDir } = await startReceiver(pebble);
    const folder = join(dataDir, 'acme', 'challenges');
    const seen = () => {
      const found = modesBelow(folder).filter(([name]) => /^[\w-]+$/.test(name));
      expect(found).toHaveLength(1);
      // Both are read together: the folder is removed as soon as the challenge is answered.
      return [statSync(folder).mode & 0o777, ...found.map(([, mode]) => mode)];
    };
    const modes = await vi.waitFor(seen, { timeout: 5_000, interval: 1 });
    expect(modes).toEqual([0o700, 0o600]);
  });

  it('serves the real certificate to other clients during a renewal by tls-alpn-01', async ({
    pebble,
  }) => {
    const clock = createClock();
    const receiver = await startReceiver(pebble, { challenge: 'tls-alpn-01', clock });
    await untilSaved(receiver);
    const { port, lines, dataDir } = receiver;
    leaveAccount(dataDir);
    const first = await servedSerial(port);
    const ask = createVerifyingClient(port, await pebble.readRoot());
    const renewed = () => lines.filter(({ message }) => message === isServed).length >= 2;
    const seen = new Set<string | null>();
    let challenged = 0;
    // Certificates of Pebble are valid for five years.
    clock.advance(4 * 365 * dayUs);
    const askUntilRenewed = async () => {
      for (let asked = 0; !renewed(); asked += 1) {
        expect(asked).toBeLessThan(2_000);
        const [status, { certificate }] = await Promise.all([
          ask(),
          handshake(port, { protocols: [] }),
        ]);
        expect(status).toBe(200);
        seen.add(certificate.serialNumber);
      }
    };
    // Several at a time: the challenge is served only for some milliseconds.
    const probeUntilRenewed = async () => {
      while (!renewed()) {
        const offered = await handshake(port, { protocols: ['acme-tls/1'] }).catch(() => null);
        if (offered?.protocol === 'acme-tls/1') challenged += 1;
      }
    };
    await Promise.all([askUntilRenewed(), probeUntilRenewed(), probeUntilRenewed()]);
    expect(challenged).toBeGreaterThan(0);
    const now = await servedSerial(port);
    expect(now).not.toBe(first);
    expect([...seen].filter((serial) => serial !== now)).toEqual([first]);
  });

  it('stops immediately during an order: nothing stays open, and no failure is counted', async ({
    pebble,
    requests,
  }) => {
    const { port, dataDir, lines, close } = await startReceiver(pebble);
    await vi.waitFor(() => expect(requests.orders()).toBe(1), { timeout: 10_000, interval: 1 });
    const beganMs = performance.now();
    await close();
    expect(performance.now() - beganMs).toBeLessThan(8_000);
    expect(lines.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);
    for (const each of [port, pebble.ports.http]) {
      await expect(handshake(each)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    }
    expect(readdirSync(join(dataDir, 'acme'))).not.toContain('renewal.json');
    const asked = requests.asked.length;
    const next = await startReceiver(pebble, { dataDir });
    await vi.waitFor(async () => expect(await servedSerial(next.port)).not.toBeNull(), soon);
    expect(requests.asked.length).toBeGreaterThan(asked);
  });
});

const failed = { level: 'error', message: expect.stringContaining('failed to order certificate') };

/** Starts a receiver and waits until its first certificate is saved. */
async function withCertificate(pebble: Pebble) {
  const receiver = await startReceiver(pebble);
  await untilSaved(receiver);
  return { ...receiver, first: await servedSerial(receiver.port) };
}

describe.skipIf(!hasPebble)('a running receiver (needs pebble)', () => {
  it('applies a certificate of another process, without an order of its own', async ({
    pebble,
    requests,
  }) => {
    const { port, dataDir, clock, first } = await withCertificate(pebble);
    // The other process has no listener: the receiver answers its challenges.
    const openListener = async () => undefined;
    const other = openProgram(pebble, { dataDir, clock, openListener });
    // The receiver may be requesting renewal information at this moment.
    await vi.waitFor(
      async () => expect((await other.check('anyway')).outcome).toBe('renewed'),
      soon,
    );
    await vi.waitFor(async () => expect(await servedSerial(port)).not.toBe(first), soon);
    expect(await createVerifyingClient(port, await pebble.readRoot())()).toBe(200);
    expect(requests.orders()).toBe(2);
  });

  it('orders immediately for another name, and serves the old certificate until then', async ({
    pebble,
    requests,
  }) => {
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

  it('logs each failure once, and the same one again after a success', async ({ pebble }) => {
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
