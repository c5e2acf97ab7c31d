/** Files that are damaged, or open to others, are named in a sentence, and never served or overwritten. */
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import { filesOf, interrupt, leaveOrder } from './interrupted-world.ts';
import { openProgram, watchRequests } from './pebble-world.ts';
import { handshake, servedSerial, startReceiver, untilSaved } from './receiver-world.ts';

const soon = { timeout: 10_000, interval: 10 };
const unusable = ['', '{', '[]', 'null', '{"directoryUrl":1}', '\u0000\u0001'];

describe.skipIf(!hasPebble)('a file that cannot be used (needs pebble)', () => {
  it.each(['account', 'order.json', 'certificate.json'])(
    '%s: the sentence names it, and without it all is well',
    async (which) => {
      const pebble = await startPebble();
      const { next } = await interrupt(pebble, 'killed', ['folder.removeOrder', 1]);
      const { dataDir, clock } = next;
      const name = filesOf(next).find((one) => one.startsWith(which)) ?? '';
      const path = next.path(name);
      const settings = { host: 'folder-removeorder-1.example.org' };
      const requests = watchRequests(pebble);
      const fail = () => openProgram(pebble, { dataDir, clock, settings }).fail('anyway');
      for (const text of unusable) {
        writeFileSync(path, text);
        expect(await fail()).toBe(
          `${path} is not as earshot wrote it. Move it away: what is missing is made anew.`,
        );
      }
      chmodSync(path, 0o640);
      expect(await fail()).toBe(
        `${path} holds a secret, and others may read or change it. Run: chmod 600 ${path}`,
      );
      expect(requests.orders()).toBe(0);
      rmSync(path);
      const program = openProgram(pebble, { dataDir, clock, settings });
      expect((await program.look('anyway')).outcome).toBe('renewed');
    },
  );

  it('renewal.json: it begins anew, and keeps no certificate from coming', async () => {
    const pebble = await startPebble();
    const { dataDir, clock } = await leaveOrder(pebble);
    for (const text of unusable) {
      const program = openProgram(pebble, { dataDir, clock });
      writeFileSync(program.path('renewal.json'), text, { mode: 0o600 });
      expect(await program.world.states.read()).toMatchObject({ failures: 0, issuedAtUs: [] });
    }
    const program = openProgram(pebble, { dataDir, clock });
    expect((await program.look()).outcome).toBe('renewed');
    expect(await program.world.states.read()).toMatchObject({ lastSuccessAtUs: clock.nowUs() });
  });

  it.each(['account', 'order.json', 'certificate.json'])(
    '%s with a key that is none: the sentence names it',
    async (which) => {
      const pebble = await startPebble();
      const { dataDir, clock } = await leaveOrder(pebble);
      const program = openProgram(pebble, { dataDir, clock });
      if (which === 'certificate.json') await program.look();
      const name = filesOf(program).find((one) => one.startsWith(which)) ?? '';
      const damaged = { ...program.saved(name), key: 'no key' };
      writeFileSync(program.path(name), JSON.stringify(damaged), { mode: 0o600 });
      expect(await program.fail('anyway')).toContain(program.path(name));
    },
  );

  it('leaves a running receiver serving what it has; at the start it is told', async () => {
    const pebble = await startPebble();
    const receiver = await startReceiver(pebble);
    await untilSaved(receiver);
    const { port, dataDir, clock, lines, close } = receiver;
    const first = await servedSerial(port);
    const path = join(dataDir, 'acme', 'certificate.json');
    writeFileSync(path, 'damaged');
    const told = () => lines.filter(({ reason }) => reason?.startsWith(path));
    await vi.waitFor(() => expect(told()).toHaveLength(1), soon);
    expect(await servedSerial(port)).toBe(first);
    await close();
    expect(told()).toHaveLength(1);
    await expect(startReceiver(pebble, { dataDir, clock })).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringContaining(path),
    });
  });

  it('and holds the answer to tls-alpn-01: such handshakes fail, and all others go on', async () => {
    const pebble = await startPebble();
    const receiver = await startReceiver(pebble, { challenge: 'tls-alpn-01' });
    await untilSaved(receiver);
    const { port, dataDir } = receiver;
    const first = await servedSerial(port);
    const other = openProgram(pebble, { dataDir });
    await other.world.challenges.putAlpn({ cert: 'none', key: 'none' });
    const path = join(dataDir, 'acme', 'challenges', 'tls-alpn-01.json');
    for (const text of [undefined, ...unusable]) {
      if (text !== undefined) writeFileSync(path, text);
      await expect(handshake(port, { protocols: ['acme-tls/1'] })).rejects.toThrow();
      expect(await servedSerial(port)).toBe(first);
    }
  });
});
