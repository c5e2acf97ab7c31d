/** `earshot reconcile` with a clock that is wrong, and with a run that was left long ago. */
import { expect, it, onTestFinished } from 'vitest';
import { createReconcileRounds } from '../../src/cli/start/reconcile.ts';
import { loadConfig, reconcileSections } from '../../src/config/config.ts';
import { catchUpIndex } from '../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../src/store/products/products.ts';
import { collect } from '../helpers/deliveries.ts';
import { hourUs, nowUs, openReconcileWorld, type ReconcileWorld } from './reconcile-world.ts';

const dayUs = 24 * hourUs;

/** When what is in the log was received. */
async function receivedAt({ withStore }: ReconcileWorld): Promise<Set<number>> {
  const rows = await withStore((store) => collect(store.find({ order: 'oldest' })));
  return new Set(rows.map(({ receivedAtUs }) => receivedAtUs));
}

it('calls no hour complete that lasts yet by the catalogue’s clock, though ours is a day ahead', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  const { code } = await world.run(['reconcile', '--since', '3d'], { nowUs: () => nowUs + dayUs });
  expect(code).toBe(0);
  const hours = await world.withStore(({ completeness }) =>
    completeness.coverage({ sinceUs: 0, untilUs: nowUs + 9 * dayUs }),
  );
  // The whole hours of two days: the third one is to come.
  expect(hours).toHaveLength(3 * 47);
  const latestUs = Math.max(...hours.map((hour) => hour.hourUs + hourUs));
  expect(latestUs).toBe(Date.UTC(2026, 4, 2, 12) * 1_000);
  expect(Math.max(...hours.map(({ comparedAtUs }) => comparedAtUs))).toBeLessThan(nowUs + hourUs);
  // What was found meanwhile stands in the log with the right time.
  const { out } = await world.run(['reconcile', '--since', '3d', '--json']);
  expect(JSON.parse(out)).toMatchObject({ fetched: 0 });
});

it('goes on with a run within two hours, and begins anew after that', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  let atUs = nowUs;
  const clock = () => atUs;
  const cut = async (afterUs: number) => {
    atUs += afterUs;
    let asked = 0;
    const stopping: typeof fetch = async (input, init) => {
      asked += 1;
      if (asked === 3) running.stop();
      return fetch(input, init);
    };
    const running = world.start(['reconcile', '--since', '3d'], { fetch: stopping, nowUs: clock });
    return (await running.ended).err;
  };
  expect(await cut(0)).not.toContain('Going on');
  expect(await cut(2 * hourUs)).toContain('Going on with what began 120 min ago.');
  expect(await cut(1)).not.toContain('Going on');
});

it.each([
  [-3, "about 3 h behind the catalogue's: a window such as --since 12h ends that much too early"],
  [3, "about 3 h ahead of the catalogue's: a window such as --since 12h begins that much too late"],
])(
  'dates what it fetches by our clock, as pushes are, and tells of %d h once',
  async (hours, told) => {
    const world = await openReconcileWorld();
    await world.register('sea-ice');
    const ownUs = nowUs + hours * hourUs;
    const { code, err } = await world.run(['reconcile', '--since', '3d'], { nowUs: () => ownUs });
    expect(code).toBe(0);
    const lines = err.split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe(`This machine's clock is ${told}. Set it by NTP.`);
    expect(await receivedAt(world)).toEqual(new Set([ownUs]));
  },
);

it('takes a clock that is a minute off for right', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  const ownUs = nowUs + 60_000_000;
  const { err } = await world.run(['reconcile', '--since', '3d'], { nowUs: () => ownUs });
  expect(err).toMatch(/^112 of 112 events were missing .*\n$/);
});

it('dates what the receiver fetches by our clock', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  const { dataDir, sandbox } = world;
  await catchUpIndex({ dataDir });
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  const env = {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '60000',
  };
  const config = loadConfig({ env, readFile: () => '' }, reconcileSections);
  const ownUs = nowUs - 3 * hourUs;
  const { signal } = new AbortController();
  const quiet = () => undefined;
  const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
  const outcome = await world.withStore((store) => {
    const io = { nowUs: () => ownUs, random: () => 0, fetch, signal };
    return createReconcileRounds({ store, products, log }, config, io, signal)();
  });
  expect(outcome).toBe('all');
  expect(await receivedAt(world)).toEqual(new Set([ownUs]));
});

it('promises no more than it can after a cut when our clock is ahead', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  const clock = () => nowUs + 3 * hourUs;
  let asked = 0;
  const stopping: typeof fetch = async (input, init) => {
    asked += 1;
    if (asked === 3) running.stop();
    return fetch(input, init);
  };
  const reconcile = ['reconcile', '--since', '3d'];
  const running = world.start(reconcile, { fetch: stopping, nowUs: clock });
  expect((await running.ended).err).toMatch(
    /ahead of the catalogue's: .*\nearshot: Stopped\. What was compared is kept; the same command may compare it again, /,
  );
  const { err } = await world.run(reconcile, { nowUs: () => clock() + 60_000_000 });
  expect(err).toMatch(/^9 of 112 events were missing and are recovered now\./);
});
