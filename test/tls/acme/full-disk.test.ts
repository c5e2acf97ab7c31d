/** A disk that fills up in the middle of an order: told, kept in memory, and no order twice. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { errorText } from '../../../src/domain/app-error.ts';
import { failureOf, openOrders, orderAtStub } from '../../helpers/order-at-stub.ts';
import type { Step } from '../../helpers/stub-authority.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const canMount = process.env.CI !== undefined || process.getuid?.() === 0;

/** A real file system of a megabyte. CI runs as root, and there it must run. */
function smallDisk() {
  const disk = temporaryDirectory();
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk]);
  onTestFinished(() => void spawnSync('umount', ['--lazy', disk]));
  const filler = join(disk, 'filler');
  return {
    dataDir: join(disk, 'data'),
    fill: () => {
      try {
        writeFileSync(filler, Buffer.alloc(2 ** 21));
      } catch {
        // Full, as it is to be.
      }
    },
    free: () => rmSync(filler, { force: true }),
  };
}

describe.skipIf(!canMount)('a disk that is full (mounting a small one takes root)', () => {
  /** The answer during which it fills up, the file that cannot be written then, orders in the end. */
  const cases: [Step, RegExp, number][] = [
    ['directory', /account-\w+\.json/, 1],
    ['newOrder', /order\.json/, 3],
    ['authorization', /challenges\/token-1/, 1],
    ['certificate', /certificate\.json/, 1],
  ];

  it.each(cases)('since %s: it is told, counted, and ends when there is room', async (...row) => {
    const [step, file, orders] = row;
    const disk = smallDisk();
    const { authority, clock, look, world, served } = await orderAtStub(
      { unproved: step === 'authorization' },
      { dataDir: disk.dataDir },
    );
    authority.break(step, (answer) => {
      disk.fill();
      return answer;
    });
    for (const failures of [1, 2]) {
      const error = await failureOf(look());
      expect(error.code).toBe('unavailable');
      expect(errorText(error)).toMatch(file);
      expect(errorText(error)).toContain('(ENOSPC): the disk is full. Free some space;');
      const state = await world.states.read();
      expect(state).toMatchObject({ failures, lastFailure: { message: error.message } });
      const asked = authority.requests.length;
      expect(await look()).toMatchObject({ outcome: 'waiting', untilUs: state.nextTryAtUs });
      expect(authority.requests).toHaveLength(asked);
      clock.us = state.nextTryAtUs ?? 0;
    }
    authority.mend(step);
    disk.free();
    expect(await look()).toMatchObject({ outcome: 'renewed' });
    expect(authority.count('newOrder')).toBe(orders);
    expect(authority.count('finalize')).toBe(1);
    // The same certificate each time, served before it could be saved.
    expect(new Set(served.map(({ cert }) => cert)).size).toBe(1);
    expect(served).toHaveLength(step === 'certificate' ? 3 : 1);
    expect(await world.folder.readCertificate()).toMatchObject({ cert: served[0]?.cert });
    expect(await world.states.read()).toMatchObject({
      failures: 0,
      issuedAtUs: [expect.any(Number)],
    });
  });

  it('before anything is there makes no account', async () => {
    const disk = smallDisk();
    mkdirSync(disk.dataDir);
    const { authority, look } = await orderAtStub({}, { dataDir: disk.dataDir });
    // The lock is there, as after an earlier try.
    writeFileSync(join(disk.dataDir, 'certificate.lock'), '');
    disk.fill();
    expect(errorText(await failureOf(look()))).toContain('the disk is full');
    expect(authority.requests).toEqual([]);
  });

  it('leaves the old certificate whole, and a restart takes the order up', async () => {
    const disk = smallDisk();
    const { authority, clock, look, world } = await orderAtStub({}, { dataDir: disk.dataDir });
    await look();
    const old = await world.folder.readCertificate();
    clock.us += 80 * 86_400_000_000;
    authority.break('certificate', (answer) => {
      disk.fill();
      return answer;
    });
    await failureOf(look());
    expect(await world.folder.readCertificate()).toEqual({ ...old, covers: expect.any(Function) });

    disk.free();
    authority.mend('certificate');
    const again = openOrders(authority, clock, { dataDir: disk.dataDir });
    expect(await again.look()).toMatchObject({ outcome: 'renewed' });
    expect(authority.count('newOrder')).toBe(2);
    expect(authority.count('finalize')).toBe(2);
  });
});

describe('a place that is taken', () => {
  it.each([
    ['certificate.json', /certificate\.json/],
    ['order.json', /order\.json/],
  ])('%s: the sentence says what to do', async (name, file) => {
    const { dataDir, look, authority, clock, world } = await orderAtStub();
    const path = join(dataDir, 'acme', name);
    authority.break('newOrder', (answer) => {
      mkdirSync(path);
      return answer;
    });
    const error = await failureOf(look());
    expect(errorText(error)).toMatch(file);
    expect(errorText(error)).toMatch(/Give the user of the receiver/);
    rmSync(path, { recursive: true });
    authority.mend('newOrder');
    clock.us = (await world.states.read()).nextTryAtUs ?? 0;
    expect(await look()).toMatchObject({ outcome: 'renewed' });
  });
});

it('every file with a key belongs to its owner alone', async () => {
  const { dataDir, look, authority } = await orderAtStub();
  const modes: string[] = [];
  const modeOf = (name: string) => (statSync(join(dataDir, 'acme', name)).mode & 0o777).toString(8);
  authority.break('certificate', (answer) => {
    modes.push(modeOf('order.json'));
    return answer;
  });
  await look();
  expect([...modes, modeOf('certificate.json'), modeOf('renewal.json'), modeOf('.')]).toEqual([
    '600',
    '600',
    '600',
    '700',
  ]);
});
