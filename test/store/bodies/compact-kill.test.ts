import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../../src/sandbox/random.ts';
import { compactLog } from '../../../src/store/bodies/compact-log.ts';
import { delivery } from '../../helpers/deliveries.ts';
import { generatedBodies } from '../../helpers/generated-bodies.ts';
import { countOthers, inFile, keptRows, openOldStore } from './bodies-in-file.ts';

const kills = 10;
const perKill = 260;
const child = new URL('compact-child.ts', import.meta.url).pathname;

it(`keeps every body as it came over ${kills} kills of a program that compacts, while others come in`, async () => {
  const bodies = generatedBodies(kills * perKill + kills * 20);
  const old = kills * perKill;
  const { store, dataDir } = await openOldStore(bodies.slice(0, old));
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
    // The moment itself is what is random here, not a wait for something to happen.
    await delay(random.integer(0, 150));
    program.kill('SIGKILL');
    await once(program, 'exit');
  }

  expect(keptRows(dataDir).length).toBeLessThan(old);
  expect(await store.counts()).toMatchObject({ notifications: stored });
  expect(await countOthers(store, bodies)).toBe(0);
  const signal = new AbortController().signal;
  await compactLog({ dataDir, freeShare: 0, rest: async () => {}, signal });
  expect(keptRows(dataDir).every(({ encoding }) => encoding === 'zstd-1')).toBe(true);
  expect(await countOthers(store, bodies)).toBe(0);
  const check = inFile(dataDir, (file) => file.pragma('integrity_check', { simple: true }));
  expect(check).toBe('ok');
}, 240_000);
