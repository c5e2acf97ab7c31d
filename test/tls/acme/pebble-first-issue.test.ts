/** A receiver without a certificate gets one, by both challenges, and serves it at once. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { hasPebble, leaveAccount, startPebble } from '../../helpers/pebble.ts';
import { createClock, dayUs, host, watchRequests } from './pebble-world.ts';
import {
  createVerifyingClient,
  handshake,
  servedSerial,
  startReceiver,
  untilSaved,
} from './receiver-world.ts';

const isServed = 'certificate changed; serving the new one';
const soon = { timeout: 20_000, interval: 20 };

/** Each file and folder below, with its permission bits. */
function modesBelow(folder: string): [string, number][] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const own: [string, number] = [entry.name, statSync(path).mode & 0o777];
    return entry.isDirectory() ? [own, ...modesBelow(path)] : [own];
  });
}

describe.skipIf(!hasPebble)('a receiver without a certificate (needs pebble)', () => {
  it.each(['http-01', 'tls-alpn-01'] as const)(
    'gets one by %s, with half of all nonces refused, and serves it without a restart',
    async (challenge) => {
      const pebble = await startPebble({ nonceReject: 50 });
      const requests = watchRequests(pebble);
      // Nothing is at the address that the name has, so that what comes before can be looked at.
      await pebble.setAddress('127.0.0.2');
      const { port, dataDir, clock, lines } = await startReceiver(pebble, { challenge });
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
      const acme = join(dataDir, 'acme');
      expect(statSync(acme).mode & 0o777).toBe(0o700);
      // Files are written in a temporary folder and then moved: that folder may be there for a moment.
      await vi.waitFor(() => {
        const modes = modesBelow(acme);
        const names = modes.map(([name]) => name);
        expect(names).not.toContain('order.json');
        expect(names).toEqual(expect.arrayContaining(['certificate.json', 'renewal.json']));
        for (const [name, mode] of modes) expect([name, mode]).toEqual([name, 0o600]);
      }, soon);
    },
  );

  it('has its answers to challenges readable by the owner alone', async () => {
    const pebble = await startPebble();
    const { dataDir } = await startReceiver(pebble);
    const folder = join(dataDir, 'acme', 'challenges');
    const modes = await vi.waitFor(
      () => {
        const found = modesBelow(folder).filter(([name]) => /^[\w-]+$/.test(name));
        expect(found).toHaveLength(1);
        return found;
      },
      { timeout: 5_000, interval: 1 },
    );
    expect(modes.map(([, mode]) => mode)).toEqual([0o600]);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
  });

  it('serves the real certificate to everybody else while tls-alpn-01 renews it', async () => {
    const pebble = await startPebble();
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
    // Five years are what Pebble gives.
    clock.advance(4 * 365 * dayUs);
    for (let asked = 0; !renewed(); asked += 1) {
      expect(asked).toBeLessThan(2_000);
      const [status, { certificate }, offered] = await Promise.all([
        ask(),
        handshake(port, { protocols: [] }),
        handshake(port, { protocols: ['acme-tls/1'] }).catch(() => null),
      ]);
      expect(status).toBe(200);
      seen.add(certificate.serialNumber);
      if (offered?.protocol === 'acme-tls/1') challenged += 1;
    }
    expect(challenged).toBeGreaterThan(0);
    const now = await servedSerial(port);
    expect(now).not.toBe(first);
    expect([...seen].filter((serial) => serial !== now)).toEqual([first]);
  });

  it('ends at once in the middle of an order: nothing stays open, and no failure is counted', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
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
