/** `earshot reconcile` with problems: wrong arguments, windows, the catalogue, another program, Ctrl-C, the clock. */
import { describe, expect, test } from 'vitest';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import {
  compareAutomatically,
  hourUs,
  nowUs,
  openReconcileContext,
  type ReconcileContext,
} from './reconcile-context.ts';

const reconcile = ['reconcile', '--since', '3d'];

async function openRegistered(options: Parameters<typeof openReconcileContext>[0] = {}) {
  const context = await openReconcileContext(options);
  await context.register('sea-ice');
  return context;
}

const it = test.extend('context', () => openRegistered());

/** Runs the command and stops it at the third catalogue query, which is never answered. */
async function cutThird(context: ReconcileContext, clock: () => number) {
  let asked = 0;
  const stopping: typeof fetch = async (input, init) => {
    asked += 1;
    if (asked === 3) running.stop();
    return fetch(input, init);
  };
  const running = context.start(reconcile, { fetch: stopping, nowUs: clock });
  return running.ended;
}

const rowsOf = ({ withStore }: ReconcileContext) =>
  withStore((store) => collect(store.find({ order: 'oldest' })));

describe('earshot reconcile', () => {
  it('refuses an unknown subscription, and names the known ones', async ({ context }) => {
    expect(await context.run([...reconcile, '--subscription', 'alps'])).toMatchObject({
      code: 2,
      err: 'earshot: There is no subscription alps. Known: sea-ice.\n',
    });
  });

  it('reports that nothing was registered, and the next step', async () => {
    const context = await openReconcileContext({ past: undefined });
    await context.withStore(async () => undefined);
    const { err } = await expectEnd(context.run(reconcile), 2);
    expect(err).toContain('No subscription was ever registered in this data directory');
    expect(err).toContain('earshot register');
    // The answer is the same with a name, because none is known.
    expect((await context.run([...reconcile, '--subscription', 'alps'])).err).toBe(err);
  });

  it('refuses an empty window and invalid times', async () => {
    const context = await openRegistered({ past: undefined });
    let clockUs = nowUs;
    const ticking = () => {
      clockUs += 7_000;
      return clockUs;
    };
    for (const [flags, reason] of [
      ['--since 1d --until 2d', 'The time range is empty'],
      ['--since 0h', 'The time range is empty'],
      ['--since 2026-06-01', 'The time range is empty'],
      ['--since yesterday', 'Use 90m, 24h, 7d'],
    ] as const) {
      await expectEnd(
        context.run(['reconcile', ...flags.split(' ')], { nowUs: ticking }),
        2,
        reason,
      );
    }
    expect(context.asked()).toBe(0);
  });

  it('reports that no subscription was active in the window', async () => {
    const context = await openRegistered({ past: undefined });
    const atUs = nowUs - 86_400_000_000;
    await context.withStore(({ administration }) =>
      administration.commit({
        removeRegistration: 'sea-ice',
        history: [
          {
            ...{ atUs, subscription: 'sea-ice', subscriptionId: null },
            ...{ action: 'deleted', actor: 'subscriptions', reason: 'Removed by the user.' },
          },
        ],
      }),
    );
    const { code, out, err } = await context.run('reconcile --since 2h');
    expect({ code, out }).toEqual({ code: 0, out: '' });
    expect(err).toMatch(
      /^No expected events: no subscription existed in this time range\. 0 requests/,
    );
  });

  it('names the settings for a catalogue with login, and logs in once they are set', async () => {
    const context = await openRegistered();
    context.sandbox.service.change({ queriesNeedToken: true });
    expect(await context.run(reconcile)).toMatchObject({
      code: 1,
      err: 'earshot: The catalogue refused to list the created products without a login (401). Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN.\n',
    });
    const env = { EARSHOT_ACCOUNT_USERNAME: 'sandbox', EARSHOT_ACCOUNT_PASSWORD: 'sandbox' };
    expect(await context.run(reconcile, { env })).toMatchObject({ code: 0 });
  });

  it('retries broken pages, and completes', async ({ context }) => {
    context.sandbox.service.change({ nextQueries: { brokenJson: 1 } });
    const { err } = await expectEnd(context.run(reconcile), 0);
    expect(err).toMatch(
      /^The catalogue's response is unusable; retrying for 2 min …\nRecovered 115 missing events\. Expected: 115 events\. 4 requests/,
    );
  });

  it('removes the progress line before it reports an error of the catalogue', async ({
    context,
  }) => {
    let asked = 0;
    const failing: typeof fetch = async (input, init) => {
      asked += 1;
      return asked === 2 ? new Response('', { status: 500 }) : fetch(input, init);
    };
    const { code, err } = await context.run(reconcile, {
      ...{ fetch: failing, isTTY: true, columns: 80 },
    });
    expect(code).toBe(0);
    expect(err).toMatch(
      /1 request *\r +\rThe catalogue responds with an error \(500\); retrying for 2 min …\n\rsea-ice/,
    );
  });

  it('does not wait for hours: it ends with the delay that the catalogue requests', async () => {
    const context = await openRegistered();
    context.sandbox.service.change({
      queryRetryAfterSeconds: 900,
      nextQueries: { rateLimited: 1 },
    });
    await expectEnd(
      context.run(reconcile),
      1,
      /\(429, .*too many requests.*Retry in 900 seconds\./,
    );
    expect(context.asked()).toBe(1);
  });

  it('ends at once with Ctrl-C while it retries a failing catalogue', async () => {
    const context = await openRegistered();
    let tries = 0;
    const fetchDown: typeof fetch = async () => {
      tries += 1;
      const refused = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' });
      throw new TypeError('fetch failed', { cause: refused });
    };
    const down = context.start(reconcile, { fetch: fetchDown });
    // The first retry follows after a second; the cause is reported once.
    await expect.poll(() => tries, { timeout: 10_000 }).toBeGreaterThan(1);
    const line = 'The catalogue does not respond (ECONNREFUSED); retrying for 2 min …\n';
    expect(down.err()).toBe(line);
    down.stop();
    expect(await down.ended).toMatchObject({
      code: 1,
      err: `${line}earshot: Interrupted. Completed hours are kept; run the command again to continue.\n`,
    });
  });

  it('continues after Ctrl-C with the remaining hours, and ends with the same result', async ({
    context,
  }) => {
    let nowMs = nowUs / 1_000;
    const clock = () => nowMs * 1_000;
    expect(await cutThird(context, clock)).toMatchObject({ code: 1 });
    nowMs += 12 * 60_000;
    const { err } = await expectEnd(context.run(reconcile, { nowUs: clock }), 0);
    expect(err).toMatch(
      /^Continuing the comparison that started 12 min ago\.\nRecovered 7 missing events\. Expected: 115 events/,
    );
    expect(await rowsOf(context)).toHaveLength(115);
    // That run is complete: the same command starts a new one.
    const again = await context.run(reconcile, { nowUs: clock });
    expect(again.err).toMatch(/^Nothing is missing\. Expected: 115 events\./);
  });

  it('reports that it waits for another comparison, and then continues', async () => {
    const context = await openRegistered();
    const release = await createAcquireLock(context.dataDir)('reconcile', { waitMs: 0 });
    const running = context.start(reconcile);
    await expect.poll(running.err).toContain('Waiting for another comparison');
    expect(context.asked()).toBe(0);
    release();
    expect(await running.ended).toMatchObject({ code: 0 });
  });
});

const dayUs = 24 * hourUs;

/** Times of receipt in the log. */
const receivedAt = async (context: ReconcileContext) =>
  new Set((await rowsOf(context)).map(({ receivedAtUs }) => receivedAtUs));

it('calls no hour complete that has not ended by the catalogue’s clock, when ours is a day ahead', async () => {
  const context = await openRegistered();
  await expectEnd(context.run(reconcile, { nowUs: () => nowUs + dayUs }), 0);
  const hours = await context.withStore(({ completeness }) =>
    completeness.coverage({ sinceUs: 0, untilUs: nowUs + 9 * dayUs }),
  );
  // The complete hours of two days: the third day is in the future.
  expect(hours).toHaveLength(3 * 47);
  const latestUs = Math.max(...hours.map((hour) => hour.hourUs + hourUs));
  expect(latestUs).toBe(Date.UTC(2026, 4, 2, 12) * 1_000);
  expect(Math.max(...hours.map(({ comparedAtUs }) => comparedAtUs))).toBeLessThan(nowUs + hourUs);
  // The recovered events have the correct time in the log.
  expect(await printedJson(context.run('reconcile --since 3d --json'))).toMatchObject({
    fetched: 0,
  });
});

it('continues a run within two hours, and starts a new one after that', async ({ context }) => {
  let atUs = nowUs;
  const clock = () => atUs;
  const cut = async (afterUs: number) => {
    atUs += afterUs;
    return (await cutThird(context, clock)).err;
  };
  expect(await cut(0)).not.toContain('Continuing');
  expect(await cut(2 * hourUs)).toContain('Continuing the comparison that started 2 h ago.');
  expect(await cut(1)).not.toContain('Continuing');
});

it.each([
  [-3, "3 h behind the catalogue's"],
  [3, "3 h ahead of the catalogue's"],
])(
  'dates recovered events by our clock, like pushes, and reports a difference of %d h once',
  async (hours, difference) => {
    const context = await openRegistered();
    const ownUs = nowUs + hours * hourUs;
    const { err } = await expectEnd(context.run(reconcile, { nowUs: () => ownUs }), 0);
    const lines = err.split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[1]).toBe(
      `The clock of this machine is ${difference}. Synchronize the clock with NTP.`,
    );
    expect(await receivedAt(context)).toEqual(new Set([ownUs]));
  },
);

it('accepts a clock that differs by a minute', async ({ context }) => {
  const ownUs = nowUs + 60_000_000;
  const { err } = await context.run(reconcile, { nowUs: () => ownUs });
  expect(err).toMatch(/^Recovered 115 missing events\. Expected: 115 events\. .*\n$/);
});

it('dates events that the receiver recovers by our clock', async ({ context }) => {
  await catchUpIndex({ dataDir: context.dataDir });
  const ownUs = nowUs - 3 * hourUs;
  expect(await compareAutomatically(context, ownUs)).toBe('all');
  expect(await receivedAt(context)).toEqual(new Set([ownUs]));
});
