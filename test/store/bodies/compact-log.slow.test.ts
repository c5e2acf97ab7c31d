/** Compaction changes how bodies are stored in the file, and nothing else. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { unpackBodies } from '../../../src/store/bodies/bodies.ts';
import { compactLog } from '../../../src/store/bodies/compact-log.ts';
import { compactStep, createRowPacker } from '../../../src/store/bodies/compact-thread.ts';
import { databaseFileName } from '../../../src/store/engine/database.ts';
import {
  createWriterConnection,
  type WriterConnection,
} from '../../../src/store/engine/writer-connection.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';
import { times } from '../../helpers/thorough.ts';
import { countOthers, inFile, keptRows, openSinglesStore } from './bodies-in-file.ts';

const never = new AbortController().signal;

const compact = (dataDir: string, options: Partial<Parameters<typeof compactLog>[0]> = {}) =>
  compactLog({ dataDir, freeShare: 0, signal: never, rest: async () => {}, ...options });

describe('compacting', () => {
  it('creates full packs of single bodies, frees their space, and ends', async () => {
    const bodies = generatedBodies(400);
    const { store, dataDir } = await openSinglesStore(bodies);
    const fileBytes = () => statSync(join(dataDir, databaseFileName)).size;
    await store.pruning.checkpoint();
    // A reader caches the last pack it read; its id names another pack afterwards.
    await store.body(1);
    const before = fileBytes();
    const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
    const packedBytes = sum(keptRows(dataDir).map(({ length }) => length));
    let steps = 1;
    const rest = async () => {
      steps += 1;
    };
    const done = await compact(dataDir, { rest });
    expect(done).toMatchObject({ bodies: 400, unreadable: 0 });
    expect(done.givenBackBytes).toBeGreaterThan(0.4 * packedBytes);
    await expect.poll(fileBytes).toBe(before - done.givenBackBytes);
    expect(steps).toBeGreaterThan(3);
    const rows = keptRows(dataDir);
    expect(rows.length).toBeLessThan(400 / 12);
    const sizes = rows.map(({ length }) => length);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8_160);
    expect(sum(sizes) / sizes.length).toBeGreaterThan(7_200);
    expect(await countOthers(store, bodies)).toBe(0);
    expect(await compact(dataDir)).toMatchObject({ bodies: 0, givenBackBytes: 0 });
    expect(keptRows(dataDir)).toEqual(rows);
  });

  it('resumes after an abort, and never merges bodies across a gap', async () => {
    const bodies = generatedBodies(400);
    const { store, dataDir } = await openSinglesStore(bodies);
    inFile(dataDir, (database) => database.exec('DELETE FROM body WHERE id BETWEEN 300 AND 302'));
    const stopping = new AbortController();
    const first = await compact(dataDir, {
      signal: stopping.signal,
      rest: async () => stopping.abort(),
    });
    expect(first.bodies).toBeGreaterThan(0);
    expect(first.bodies).toBeLessThan(300);
    const rest = await compact(dataDir);
    expect(first.bodies + rest.bodies).toBe(397);
    const ends = keptRows(dataDir).map((row) => row.id + row.bodies);
    expect(ends).toContain(300);
    await expect(store.body(301)).rejects.toThrow();
    expect(await countOthers(store, bodies.slice(0, 299))).toBe(0);
    expect(Buffer.from(await store.body(400))).toEqual(bodies[399]);
  });

  it('leaves unreadable bodies alone and reports their number', async () => {
    const bodies = generatedBodies(60);
    const { store, dataDir } = await openSinglesStore(bodies);
    inFile(dataDir, (database) =>
      database.exec('UPDATE body SET packed = zeroblob(100) WHERE id IN (1, 30)'),
    );
    expect(await compact(dataDir)).toMatchObject({ bodies: 58, unreadable: 2 });
    const whole = keptRows(dataDir).filter(({ bodies }) => bodies === 1);
    expect(whole.map(({ id }) => id)).toEqual(expect.arrayContaining([1, 30]));
    await expect(store.body(30)).rejects.toThrow(/damaged/);
    expect(Buffer.from(await store.body(31))).toEqual(bodies[30]);
  });

  it('discards its work where rows were removed meanwhile, and repeats it', async () => {
    const { dataDir } = await openSinglesStore(generatedBodies(50));
    const connection = createWriterConnection({ dataDir });
    let transactions = 0;
    const interrupted: WriterConnection = {
      ...connection,
      transact: (work) => {
        transactions += 1;
        if (transactions === 1)
          inFile(dataDir, (database) => database.exec('DELETE FROM body WHERE id < 10'));
        return connection.transact(work);
      },
    };
    const packRow = createRowPacker(1);
    const step = () => compactStep(interrupted, packRow);
    expect(step()).toMatchObject({ bodies: 0, isDone: false });
    expect(keptRows(dataDir)).toHaveLength(41);
    expect(step()).toMatchObject({ bodies: 41, isDone: true });
    expect(keptRows(dataDir)[0]?.id).toBe(10);
    connection.close();
  });
});

const kills = times(4, 10);
const perKill = 260;
const child = new URL('compact-child.ts', import.meta.url).pathname;

it(`keeps every body unchanged over ${kills} kills of the compacting program while others arrive`, async () => {
  const bodies = generatedBodies(kills * perKill + kills * 20);
  const old = kills * perKill;
  const { store, dataDir } = await openSinglesStore(bodies.slice(0, old));
  const random = createRandom(20_261_121);
  let stored = old;
  for (let round = 0; round < kills; round += 1) {
    const program = spawn(process.execPath, [child, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void program.kill('SIGKILL'));
    await once(program.stdout, 'data');
    for (const body of bodies.slice(stored, stored + 20)) await store.accept(delivery(body));
    stored += 20;
    // The kill time is random by design; nothing is awaited here.
    await delay(random.integer(0, 150));
    program.kill('SIGKILL');
    await once(program, 'exit');
  }

  expect(keptRows(dataDir).length).toBeLessThan(old);
  expect(await store.counts()).toMatchObject({ notifications: stored });
  expect(await countOthers(store, bodies)).toBe(0);
  await compact(dataDir);
  expect(keptRows(dataDir).length).toBeLessThan(bodies.length / 10);
  expect(await countOthers(store, bodies)).toBe(0);
  const check = inFile(dataDir, (file) => file.pragma('integrity_check', { simple: true }));
  expect(check).toBe('ok');
}, 240_000);

it('full packs lose no bodies that are tiny, huge or incompressible', () => {
  const noise = fc
    .tuple(fc.integer({ min: 0, max: 40_000 }), fc.integer())
    .map(([length, seed]) => Buffer.from(createRandom(seed).hex(2 * length), 'hex'));
  const pattern = fc.integer({ min: 0, max: 300_000 }).map((length) => Buffer.alloc(length, 'ab'));
  const some = fc.array(fc.oneof(noise, pattern), { minLength: 1, maxLength: 100, size: 'max' });
  fc.assert(
    fc.property(some, (bodies) => {
      const packRow = createRowPacker(1);
      const unpacked: Uint8Array[] = [];
      while (unpacked.length < bodies.length) {
        unpacked.push(...packRow(bodies.slice(unpacked.length)).flatMap(unpackBodies));
      }
      expect(unpacked.length).toBe(bodies.length);
      expect(Buffer.concat(unpacked).equals(Buffer.concat(bodies))).toBe(true);
    }),
    { numRuns: 8 },
  );
});
