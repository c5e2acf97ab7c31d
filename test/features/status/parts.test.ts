/** Evaluation of each status part. The facts are those of a healthy receiver, with one change per test. */
import { describe, expect, it } from 'vitest';
import { evaluateStatus } from '../../../src/features/status/parts.ts';
import { isOk, type StatusFacts, type StatusPart } from '../../../src/features/status/status.ts';
import { queueState } from '../../admin/sample-queue.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { covered as comparedHour } from '../alerts/watch-context.ts';
import {
  activeAlert,
  dayUs,
  evaluatedPart as evaluate,
  type Facts,
  hourUs,
  minuteUs,
  subscription,
  wellFacts,
} from './status-facts.ts';

const well = wellFacts();
const notRunning = { receiver: null };
const [alps] = well.subscriptions;
const [index, , summaryReader] = well.readers;
const [archive] = well.sinks;
const [covered] = well.coverage;
/** Coverage of a subscription that began a quarter of an hour ago. */
const none = {
  ...(covered as NonNullable<typeof covered>),
  ...{ state: 'not-compared' as const, expected: 0, pushed: 0, late: 0, recovered: 0 },
  ...{ comparedHours: 0, unknownHours: 0, nextDueAtUs: nowUs + hourUs, complete: null },
};

type Changes<Fact> = Partial<Fact> & object;
const changed = <Fact extends object>(
  fact: Fact | null | undefined,
  changes: Changes<Fact>,
): Fact => {
  if (fact === null || fact === undefined) throw new Error('There is no such fact.');
  return { ...fact, ...changes };
};
const log = (changes: Changes<NonNullable<StatusFacts['log']>>) => ({
  log: changed(well.log, changes),
});
const certificate = (changes: Changes<NonNullable<StatusFacts['certificate']>>) => ({
  certificate: changed(well.certificate, changes),
});

/** Receivers of a shared log. */
const receivers = (fault: string | null) => ({
  receivers: ['a', 'b', 'c'].map((name) => ({
    ...{ name, isThis: name === 'b', reportedAtUs: nowUs, lag: name === 'b' ? 7 : 0 },
    ...{ refusing: null, fault: name === 'b' ? fault : null },
  })),
});

describe('a healthy receiver', () => {
  it('has only parts of the level "ok"', async () => {
    const { parts } = evaluateStatus(well);
    expect(isOk({ parts })).toBe(true);
    expect(parts.map(({ part, level }) => `${part} ${level}`)).toEqual(
      [
        ...['receiver', 'log', 'subscriptions', 'certificate', 'coverage', 'readers', 'sinks'],
        ...['summaries', 'disk', 'backup', 'alerts'],
      ].map((part) => `${part} ok`),
    );
    expect(parts.every(({ nextStep }) => nextStep === null)).toBe(true);
  });
});

const gibibyte = 2 ** 30;

/** A queue whose requests have just begun to fail. */
const unreadable = {
  ...queueState({ readAtUs: nowUs - minuteUs, failure: 'Log in again.', failingSinceUs: nowUs }),
};

const missingHour = comparedHour(0, {
  ...{ hourUs: nowUs - 3 * hourUs, comparedAtUs: nowUs - minuteUs, pushed: 9 },
});

describe('a healthy part', () => {
  it.each<[StatusPart, Partial<Facts>, string]>([
    [
      'receiver',
      {},
      'accepting notifications, up for 12 days (process 4711); last received 2 min ago',
    ],
    [
      'receiver',
      log({ lastReceivedAtUs: null }),
      'up for 12 days (process 4711); none received yet',
    ],
    [
      'receiver',
      { receiver: { startedAtUs: null, pid: null, refusing: null, queue: null } },
      'accepting notifications; last',
    ],
    [
      'receiver',
      {
        ...log({ lastReceivedAtUs: nowUs - minuteUs + 1 }),
        receiver: { startedAtUs: nowUs - 40_000_000, pid: null, refusing: null, queue: null },
      },
      'up for 40 s; last received just now',
    ],
    [
      'subscriptions',
      { subscriptions: [changed(alps, { lastDeliveryAtUs: nowUs })] },
      'alps (running, last notification just now)',
    ],
    ['receivers', receivers(null), '3 receivers; lag of this one: 7 entries'],
    ['log', {}, 'since 2025-03-28 12:00 UTC, 4.2 GiB, index 1.1 GiB; quarantine empty'],
    ['log', log({ firstReceivedAtUs: null, indexBytes: 0 }), 'empty, 4.2 GiB; quarantine empty'],
    ['log', log({ quarantined: 1_001 }), '1,001 bodies in quarantine (`earshot quarantine list`)'],
    [
      'log',
      log({ pruned: { position: 1, receivedBeforeUs: 1, prunedAtUs: nowUs } }),
      'pruned, since 2025-03-28 12:00 UTC, 4.2 GiB',
    ],
    [
      'subscriptions',
      {},
      'alps (running, last notification 2 min ago), sea-ice (running, last notification 3 h ago)',
    ],
    [
      'subscriptions',
      { subscriptions: [changed(alps, { state: 'paused', pausedOnPurpose: true })] },
      'alps (paused on purpose)',
    ],
    [
      'subscriptions',
      { subscriptions: ['a', 'b', 'c', 'd', 'e'].map((name) => changed(alps, { name })) },
      'c (running, last notification 2 min ago) and 2 more',
    ],
    ['certificate', {}, 'valid for another 61 days'],
    [
      'certificate',
      certificate({ notAfterUs: nowUs + 30 * dayUs - 1 }),
      'valid for another 29 days',
    ],
    ['certificate', certificate({ lastFailure: 'No route.' }), '61 days; the last renewal failed'],
    [
      'coverage',
      {},
      '7 days, 1 hour not compared; 12,004 events expected: none missing, 14 recovered, 3 late',
    ],
    [
      'coverage',
      { coverage: [changed(covered, { missing: 2 })] },
      '12,004 events expected: 2 missing, 14',
    ],
    [
      'coverage',
      { comparisonOff: 'EARSHOT_RECONCILE is off.' },
      '3 late; automatic comparison is off: EARSHOT_RECONCILE is off',
    ],
    [
      'coverage',
      { coverage: [...well.coverage, { ...none, subscription: 'sea-ice' }] },
      '3 late; not compared yet: sea-ice',
    ],
    ['readers', {}, 'product index, summaries up to date'],
    [
      'readers',
      { readers: [changed(index, { behind: 1_200, unreadSinceUs: nowUs - 15 * minuteUs })] },
      'lag of product index: 1,200 notifications',
    ],
    [
      'readers',
      {
        readers: [changed(index, { of: 'tail', name: 'reader mine', behind: 9, unreadSinceUs: 1 })],
      },
      'lag of reader mine: 9 notifications',
    ],
    ['sinks', {}, 'archive: queue empty'],
    ['sinks', { sinks: [changed(archive, { waiting: 1_000 })] }, 'archive: 1,000 queued'],
    ['summaries', {}, '3 waiting; 1,204 requests and 1,530,020 tokens in 24 h'],
    [
      'summaries',
      { summaries: changed(well.summaries, { dueAtUs: nowUs - 3 * hourUs }) },
      '3 waiting, overdue for 3 h; 1,204 requests',
    ],
    ['disk', {}, '41 GiB of 80 GiB free'],
    ['backup', {}, '3 h old, 4.3 GiB, every 24 h'],
    ['alerts', {}, 'no active alerts'],
  ])('%s: the text describes its state (%#)', async (part, changes, text) => {
    const evaluated = await evaluate(part, changes);
    expect(evaluated).toMatchObject({ level: 'ok', nextStep: null });
    expect(evaluated?.text).toContain(text);
  });
});

describe('coverage without a comparison', () => {
  const due = { ...none, nextDueAtUs: nowUs };
  const comparisonOff = 'EARSHOT_RECONCILE is off.';
  const command = 'Run `earshot reconcile` to compare now.';
  it.each<[Partial<Facts>, string, string | null]>([
    [
      { coverage: [none] },
      'no full hour was compared yet; the first is compared at 2026-05-02 13:00 UTC',
      null,
    ],
    [
      { coverage: [none], comparisonOff },
      'no full hour was compared yet; the first is due at 2026-05-02 13:00 UTC, but automatic comparison is off: EARSHOT_RECONCILE is off',
      null,
    ],
    [
      { coverage: [due] },
      'no full hour was compared yet; a running receiver compares one within 5 min',
      command,
    ],
    [{ coverage: [due], comparisonOff }, 'not compared: EARSHOT_RECONCILE is off', command],
  ])(
    'is no fault, names the time or the reason, and offers the command when due: %#',
    async (...row) => {
      const [changes, text, nextStep] = row;
      expect(await evaluate('coverage', changes)).toMatchObject({
        level: 'ok',
        text,
        nextStep,
      });
    },
  );
});

describe('an unused part', () => {
  it.each<[StatusPart, Partial<Facts>, string]>([
    ['subscriptions', { subscriptions: [] }, 'none registered here'],
    ['certificate', { behindProxy: true, certificate: null }, 'provided by the proxy'],
    ['coverage', { coverage: [] }, 'no subscription registered, so nothing is expected'],
    ['readers', { readers: [] }, 'none'],
    [
      'readers',
      {
        readers: [changed(summaryReader, { behind: 9, unreadSinceUs: 1 })],
        summaries: changed(well.summaries, { mode: 'off' }),
      },
      'none',
    ],
    ['sinks', { sinks: [] }, 'none configured'],
    ['summaries', { summaries: changed(well.summaries, { mode: 'off', waiting: 0 }) }, 'off'],
    ['disk', { disk: null }, 'free space unknown on this system'],
    ['backup', { backups: { made: null, failed: null, everyHours: null } }, 'none made yet'],
    [
      'backup',
      {
        receiver: { startedAtUs: nowUs - minuteUs, pid: null, refusing: null, queue: null },
        backups: { made: null, failed: null, everyHours: 24 },
      },
      'none yet, every 24 h',
    ],
    ['alerts', notRunning, 'no active alerts, but only a running receiver raises alerts'],
  ])('%s: the text says so, and it is no fault (%#)', async (part, changes, text) => {
    expect(await evaluate(part, changes)).toMatchObject({ level: 'ok', text, nextStep: null });
  });
});

describe('a faulty part', () => {
  const failed = (endedUs: number) => ({
    ...{ file: '/b', startedAtUs: endedUs, endedAtUs: endedUs, bytes: null, lastPosition: null },
    error: 'There is no space.',
  });
  it.each<[StatusPart, 'warning' | 'critical', Partial<Facts>, RegExp, RegExp]>([
    ['receiver', 'critical', notRunning, /^The receiver is not running/, /earshot start/],
    [
      ...(['receiver', 'critical'] as const),
      { receiver: { startedAtUs: null, pid: null, refusing: 'The disk is full.', queue: null } },
      ...([/refused: The disk is full\.$/, /earshot doctor/] as const),
    ],
    [
      ...(['receivers', 'critical'] as const),
      receivers('The disk is full.'),
      ...([/applies no entries.*: The disk is full\.$/, /disk of this receiver/] as const),
    ],
    [
      ...(['subscriptions', 'warning'] as const),
      { subscriptions: [], ...log({ lastReceivedAtUs: null }) },
      ...([/^No subscription is registered/, /earshot register/] as const),
    ],
    [
      ...(['subscriptions', 'critical'] as const),
      { subscriptions: [subscription('alps', {}, { pausedSeenAtUs: nowUs })] },
      ...([/^The subscription alps is not running, although/, /earshot register/] as const),
    ],
    [
      ...(['subscriptions', 'warning'] as const),
      {
        subscriptions: [
          subscription(
            'alps',
            {},
            { activityAtUs: nowUs - 46.5 * dayUs, notifiedAtUs: nowUs - 46.5 * dayUs },
          ),
        ],
      },
      ...([/pause the subscription alps in 13 days/, /subscriptions show alps/] as const),
    ],
    [
      ...(['subscriptions', 'warning'] as const),
      { subscriptions: [subscription('alps', { queue: unreadable })] },
      ...([/^The queue of the subscription alps cannot be read/, /earshot doctor/] as const),
    ],
    ['certificate', 'critical', { certificate: null }, /no certificate yet/, /certificate renew/],
    [
      ...(['certificate', 'warning', certificate({ notAfterUs: nowUs + 14 * dayUs })] as const),
      ...([/expires in 14 days/, /certificate show/] as const),
    ],
    [
      ...(['certificate', 'critical'] as const),
      certificate({ notAfterUs: null, lifetimeUs: null, lastFailure: 'No route.' }),
      ...([/no certificate yet/, /certificate renew/] as const),
    ],
    [
      ...(['certificate', 'critical', certificate({ notAfterUs: nowUs - 1 })] as const),
      ...([/has expired/, /certificate show/] as const),
    ],
    [
      ...(['coverage', 'warning'] as const),
      { subscriptions: [subscription('alps', { coverage: [{ ...missingHour, missing: 1 }] })] },
      ...([/^1 event of the subscription alps is missing/, /earshot reconcile --since/] as const),
    ],
    [
      ...(['readers', 'warning'] as const),
      { readers: [changed(index, { behind: 9_999, unreadSinceUs: nowUs - 16 * minuteUs })] },
      ...([/9,999 notifications, the oldest received 16 min ago/, /lag decreases/] as const),
    ],
    [
      ...(['sinks', 'warning'] as const),
      { sinks: [changed(archive, { fault: 'Its secret is gone.' })] },
      ...([/Nothing is delivered to the sink archive/, /earshot doctor/] as const),
    ],
    [
      ...(['sinks', 'warning'] as const),
      {
        sinks: [
          changed(archive, {
            ...{ waiting: 5, lastDeliveredAtUs: nowUs - dayUs },
            oldestLiveWaitingAtUs: nowUs - 16 * minuteUs,
          }),
        ],
      },
      ...([/archive does not deliver: 5 .* the oldest for 16 min/, /earshot sinks/] as const),
    ],
    [
      ...(['sinks', 'warning'] as const),
      { sinks: [changed(archive, { waiting: 5, failingSinceUs: nowUs - 1, lastError: 'Gone.' })] },
      ...([/archive does not deliver: 5/, /earshot sinks/] as const),
    ],
    [
      ...(['sinks', 'warning'] as const),
      { sinks: [changed(archive, { waiting: 5, oldestWaitingAtUs: nowUs - 2 * minuteUs })] },
      ...([/archive does not deliver: 5/, /earshot sinks/] as const),
    ],
    [
      ...(['sinks', 'warning'] as const),
      { sinks: [changed(archive, { dead: 2 }), changed(archive, { name: 'b', dead: 1 })] },
      ...([
        /archive has refused 2 notifications permanently\. \(and 1 more\)/,
        /sinks dead/,
      ] as const),
    ],
    [
      ...(['summaries', 'warning'] as const),
      {
        summaries: changed(well.summaries, {
          refusedAnswer: { model: 'a/b', refused: 'it is empty', answer: 'x'.repeat(300) },
        }),
      },
      ...([/answers of a\/b are refused: it is empty\. Last answer: "x{200}"/, /MODEL/] as const),
    ],
    [
      ...(['disk', 'warning'] as const),
      { disk: { freeBytes: 4 * gibibyte, totalBytes: 80 * gibibyte, reserveBytes: 2 ** 28 } },
      ...([/has only 4 GiB of free space/, /Free some space/] as const),
    ],
    [
      ...(['backup', 'warning'] as const),
      {
        backups: {
          ...{ everyHours: 24, failed: failed(nowUs) },
          made: changed(well.backups?.made, { startedAtUs: nowUs - 49 * hourUs }),
        },
      },
      ...([/last backup is 2 days old, although a backup/, /earshot backup/] as const),
    ],
  ])('%s: is a %s, and has a next step (%#)', async (part, level, changes, text, nextStep) => {
    const evaluated = await evaluate(part, changes);
    expect(evaluated).toMatchObject({ level });
    expect(evaluated?.text).toMatch(text);
    expect(evaluated?.nextStep).toMatch(nextStep);
  });

  it('has the reason as its text when it could not be checked', async () => {
    const failures = [{ part: 'disk' as const, reason: 'It hangs.' }];
    expect(await evaluate('disk', { failures, disk: null })).toMatchObject({
      level: 'unknown',
      text: 'The state is unknown: It hangs.',
    });
  });
});

describe('an active alert', () => {
  it.each([
    ['intake', 'receiver'],
    ['silence', 'subscriptions'],
  ] as const)('of the kind %s is the evaluation of %s', async (kind, part) => {
    const alerts = [activeAlert(kind, kind === 'silence' ? 'alps' : '')];
    expect(await evaluate(part, { alerts })).toMatchObject({
      ...{ level: 'warning', text: `The text of ${kind}.` },
      nextStep: `What to do about ${kind}.`,
    });
    const about = kind === 'silence' ? `${kind} (alps)` : kind;
    expect(await evaluate('alerts', { alerts })).toMatchObject({ text: `1 active: ${about}` });
  });

  it('is shown before milder ones of its part, and counted with them', async () => {
    const alerts = [activeAlert('silence', 'alps'), activeAlert('silence', 'sea-ice', 'critical')];
    expect(await evaluate('subscriptions', { alerts })).toMatchObject({
      level: 'critical',
      text: 'The text of silence. (and 1 more)',
    });
    expect(await evaluate('alerts', { alerts })).toMatchObject({ level: 'critical' });
  });

  it('is less important than a worse current state', async () => {
    const evaluated = await evaluate('receiver', {
      ...notRunning,
      alerts: [activeAlert('intake')],
    });
    expect(evaluated?.text).toMatch(/^The receiver is not running/);
  });

  it('keeps its part from the level "ok" until the watchdog resolves it', async () => {
    const space = { totalBytes: 80 * gibibyte, reserveBytes: 2 ** 28 };
    const disk = { ...space, freeBytes: 5.5 * gibibyte };
    expect(await evaluate('disk', { disk })).toMatchObject({ level: 'ok' });
    expect(await evaluate('disk', { disk, alerts: [activeAlert('disk')] })).toMatchObject({
      level: 'warning',
    });
  });
});
