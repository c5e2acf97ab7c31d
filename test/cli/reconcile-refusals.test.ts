/** `earshot reconcile` where something is in the way: words, windows, the catalogue, another program, Ctrl-C. */
import { describe, expect, it } from 'vitest';
import { createTakeLock } from '../../src/store/engine/locks.ts';
import { collect } from '../helpers/deliveries.ts';
import { nowUs, openReconcileWorld, type ReconcileWorld } from './reconcile-world.ts';

const reconcile = ['reconcile', '--since', '3d'];

async function openRegistered(options: Parameters<typeof openReconcileWorld>[0] = {}) {
  const world = await openReconcileWorld(options);
  await world.register('sea-ice');
  return world;
}

const rowsOf = ({ withStore }: ReconcileWorld) =>
  withStore((store) => collect(store.find({ order: 'oldest' })));

describe('earshot reconcile', () => {
  it('refuses a subscription that never was, and says which were', async () => {
    const world = await openRegistered();
    expect(await world.run([...reconcile, '--subscription', 'alps'])).toMatchObject({
      code: 2,
      err: 'earshot: There never was a subscription alps in this data directory. Known are: sea-ice.\n',
    });
  });

  it('says that nothing was registered, and what to do', async () => {
    const world = await openReconcileWorld({ past: undefined });
    await world.withStore(async () => undefined);
    const { code, err } = await world.run(reconcile);
    expect(code).toBe(2);
    expect(err).toContain('No subscription was ever registered in this data directory');
    expect(err).toContain('earshot register');
    // Named or not, there is nothing to be named.
    expect((await world.run([...reconcile, '--subscription', 'alps'])).err).toBe(err);
  });

  it('refuses an empty window, and times that are none', async () => {
    const world = await openRegistered({ past: undefined });
    const empty = await world.run(['reconcile', '--since', '1d', '--until', '2d']);
    expect(empty).toMatchObject({ code: 2, err: expect.stringContaining('The window is empty') });
    let clockUs = nowUs;
    const ticking = () => {
      clockUs += 7_000;
      return clockUs;
    };
    const slip = await world.run(['reconcile', '--since', '0h'], { nowUs: ticking });
    expect(slip).toMatchObject({ code: 2, err: expect.stringContaining('The window is empty') });
    const future = await world.run(['reconcile', '--since', '2026-06-01']);
    expect(future).toMatchObject({ code: 2, err: expect.stringContaining('The window is empty') });
    const odd = await world.run(['reconcile', '--since', 'yesterday']);
    expect(odd).toMatchObject({ code: 2, err: expect.stringContaining('Use 90m, 24h, 7d') });
    expect(world.asked()).toBe(0);
  });

  it('says so where nothing was asked for in the window', async () => {
    const world = await openRegistered({ past: undefined });
    const atUs = nowUs - 86_400_000_000;
    await world.withStore(({ administration }) =>
      administration.commit({
        forget: 'sea-ice',
        history: [
          {
            ...{ atUs, subscription: 'sea-ice', subscriptionId: null },
            ...{ action: 'deleted', actor: 'subscriptions', reason: 'No longer wanted.' },
          },
        ],
      }),
    );
    const { code, out, err } = await world.run(['reconcile', '--since', '2h']);
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toMatch(
      /^No event is expected: there was no subscription in that time\. 0 requests/,
    );
  });

  it('names what to set when the catalogue wants a login, and logs in when that is set', async () => {
    const world = await openRegistered();
    world.sandbox.service.change({ queriesNeedToken: true });
    expect(await world.run(reconcile)).toMatchObject({
      code: 1,
      err: 'earshot: The catalogue refuses to list the created products without a login (401). Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN.\n',
    });
    const env = { EARSHOT_ACCOUNT_USERNAME: 'sandbox', EARSHOT_ACCOUNT_PASSWORD: 'sandbox' };
    expect(await world.run(reconcile, { env })).toMatchObject({ code: 0 });
  });

  it('asks again for pages that are broken, and ends with all of it', async () => {
    const world = await openRegistered();
    world.sandbox.service.change({ nextQueries: { brokenJson: 1 } });
    const { code, err } = await world.run(reconcile);
    expect(code).toBe(0);
    expect(err).toMatch(
      /^The catalogue's answer cannot be used; trying again for about 2 min …\n112 of 112 events were missing and are recovered now\. 4 requests/,
    );
  });

  it('takes the progress away before it tells that the catalogue fails', async () => {
    const world = await openRegistered();
    let asked = 0;
    const failing: typeof fetch = async (input, init) => {
      asked += 1;
      return asked === 2 ? new Response('', { status: 500 }) : fetch(input, init);
    };
    const { code, err } = await world.run(reconcile, {
      ...{ fetch: failing, isTTY: true, columns: 80 },
    });
    expect(code).toBe(0);
    expect(err).toMatch(
      /1 request *\r +\rThe catalogue does not answer as it should \(500\); trying again for about 2 min …\n\rsea-ice/,
    );
  });

  it('does not wait for hours: it ends with how long the catalogue wants to be left alone', async () => {
    const world = await openRegistered();
    world.sandbox.service.change({ queryRetryAfterSeconds: 900, nextQueries: { rateLimited: 1 } });
    const { code, err } = await world.run(reconcile);
    expect(code).toBe(1);
    expect(err).toMatch(/asked too often \(429, .*Try again in 900 seconds\./);
    expect(world.asked()).toBe(1);
  });

  it('ends at once with Ctrl-C while a catalogue that is down is tried again', async () => {
    const world = await openRegistered();
    let tries = 0;
    const fetchDown: typeof fetch = async () => {
      tries += 1;
      const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      throw new TypeError('fetch failed', { cause: refused });
    };
    const down = world.start(reconcile, { fetch: fetchDown });
    // The second try comes a second later; the cause is told once.
    await expect.poll(() => tries, { timeout: 10_000 }).toBeGreaterThan(1);
    const line = 'The catalogue does not answer (ECONNREFUSED); trying again for about 2 min …\n';
    expect(down.err()).toBe(line);
    down.stop();
    expect(await down.ended).toMatchObject({
      code: 1,
      err: `${line}earshot: Stopped. What was compared is kept; the same command goes on from there.\n`,
    });
  });

  it('goes on after Ctrl-C from the hours that are done, and ends the same', async () => {
    const world = await openRegistered();
    let nowMs = nowUs / 1_000;
    const clock = () => nowMs * 1_000;
    let asked = 0;
    const stopping: typeof fetch = async (input, init) => {
      asked += 1;
      // The third list is never answered.
      if (asked === 3) running.stop();
      return fetch(input, init);
    };
    const running = world.start(reconcile, { fetch: stopping, nowUs: clock });
    expect(await running.ended).toMatchObject({ code: 1 });
    nowMs += 12 * 60_000;
    const { code, err } = await world.run(reconcile, { nowUs: clock });
    expect(code).toBe(0);
    expect(err).toMatch(/^Going on with what began 12 min ago\.\n9 of 112 events were missing/);
    expect(await rowsOf(world)).toHaveLength(112);
    // That one is finished: the same words begin anew.
    const again = await world.run(reconcile, { nowUs: clock });
    expect(again.err).toMatch(/^Nothing is missing: 112 events\./);
  });

  it('says that it waits for another program that compares, and then goes on', async () => {
    const world = await openRegistered();
    const release = await createTakeLock(world.dataDir)('reconcile', { waitMs: 0 });
    const running = world.start(reconcile);
    await expect.poll(running.err).toContain('Waiting for the receiver');
    expect(world.asked()).toBe(0);
    release();
    expect(await running.ended).toMatchObject({ code: 0 });
  });
});
