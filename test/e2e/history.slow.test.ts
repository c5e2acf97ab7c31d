/** Some simulated days with several causes of losses: afterwards, the log contains exactly the expected events. */
import { expect, it } from 'vitest';
import { times } from '../helpers/thorough.ts';
import { openHistory } from '../simulation/history.ts';
import { readLog, resultOf } from '../simulation/log-events.ts';

const minuteMs = 60_000;
const perHour = times(6, 20);

/** Payload shapes and delivery faults that do not change the expected events, and a loss of 5 %. */
const faults = {
  ...{ ackIdAbsent: 0.1, arrayBody: 0.05, capitalValue: 0.05 },
  ...{ duplicate: 0.02, outOfOrder: 0.02, answerLost: 0.01, lost: 0.05 },
};

const deletions = { events: ['deleted'], filter: '' } as const;
const acquisitionsOf = (...missions: string[]) => ({
  events: ['created', 'modified'] as const,
  filter: missions.map((name) => `Collection/Name eq '${name}'`).join(' or '),
});

type History = Awaited<ReturnType<typeof openHistory>>;

async function whileStopped({ shut, open, compare }: History, during: () => Promise<unknown>) {
  await shut();
  await during();
  await open();
  await compare();
}

/** Changes the filter. Only two subscriptions may run: for eight minutes, neither the old nor the new one runs. */
async function replaceWithGap({ register, sandbox }: History): Promise<void> {
  let isPast = false;
  const isRunning = () =>
    sandbox
      .subscriptions()
      .some((one) => one.status === 'running' && one.endpoint?.endsWith('/acquisitions'));
  const acquisitions = acquisitionsOf('SENTINEL-2', 'SENTINEL-3');
  await register({ acquisitions, deletions }, async (...request) => {
    if (!isPast && !isRunning()) {
      isPast = true;
      await sandbox.pass({ durationMs: 8 * minuteMs, products: 8 });
    }
    return fetch(...request);
  });
  expect(isPast).toBe(true);
}

it('some days with outages, losses, a pause and a replacement end with a log of exactly the expected events', async () => {
  const history = await openHistory(20_261_121, {
    // A push that fails in an outage may arrive 41 minutes late.
    ...{ retryDelaysMs: [0, minuteMs, 40 * minuteMs], faults },
    ...{ lateShare: 0.2, lateMaxMs: 12 * 60 * minuteMs, modifiedShare: 0.3, deletedShare: 0.1 },
  });
  const { passHours, sandbox, succeed, command, register, nowMs } = history;
  const fromMs = nowMs();
  await register({ acquisitions: acquisitionsOf('SENTINEL-1', 'SENTINEL-2'), deletions });
  await passHours(9, perHour);
  await whileStopped(history, () => sandbox.pass({ durationMs: 7 * minuteMs, products: 5 }));
  await passHours(10, perHour);
  await whileStopped(history, () => passHours(3, perHour));
  await passHours(8, perHour);
  await succeed(['subscriptions', 'pause', 'acquisitions']);
  await passHours(20, perHour);
  await succeed(['subscriptions', 'resume', 'acquisitions']);
  await passHours(10, perHour);
  await replaceWithGap(history);
  await passHours(12, perHour);
  // Without events, so that delayed records are shown and compared twice.
  await passHours(38, 0);
  await history.compare();

  const { faults: wrong, expected, logged } = resultOf(history);
  expect(wrong).toEqual([]);
  // All kinds of events and faults must occur; otherwise the test proves nothing.
  expect(new Set(expected.map(({ event }) => event)).size).toBe(3);
  const recovered = logged.filter(({ source }) => source === 'reconcile');
  expect(recovered.length).toBeGreaterThan(0.1 * expected.length);
  expect(recovered.some(({ pushedAtUs }) => pushedAtUs !== null)).toBe(true);
  expect(expected.length).toBeGreaterThan(logged.length);

  const { administration, completeness } = history.store();
  expect(await completeness.definitions()).toMatchObject(
    history.periods.map(({ toUs: _, ...asIs }) => asIs),
  );
  const gaps = await administration.gaps();
  expect(gaps.map(({ subscription }) => subscription)).toEqual(['acquisitions', 'acquisitions']);

  const window = ['--since', new Date(fromMs).toISOString()];
  const { out } = await command(['coverage', ...window, '--json']);
  const { missing, subscriptions } = JSON.parse(out);
  expect(missing).toBe(0);
  expect(subscriptions).toMatchObject([
    { complete: 1, unknownHours: 0 },
    { complete: 1, unknownHours: 0 },
  ]);
  for (const flag of ['--json', '--check']) {
    const { code, err } = await command(['reconcile', ...window, flag]);
    expect(code, err).toBe(0);
  }
  expect(readLog(history.dataDir)).toEqual(logged);
}, 300_000);
