/** The evaluation of each part in each of its states; all outputs show the same one. */

import { describe, expect, it } from 'vitest';
import { printReport } from '../../../src/core/cli/print-report.ts';
import {
  isOk,
  type Status,
  type StatusFacts,
  toStatusJson,
} from '../../../src/core/status/status.ts';
import type { Check, Level } from '../../../src/core/terms/evaluation.ts';
import { backupCheck } from '../../../src/features/backup/status.ts';
import { certificateCheck } from '../../../src/features/certificate/status.ts';
import { createMetrics } from '../../../src/features/metrics/metrics.ts';
import { sinkChecks, sinksReport } from '../../../src/features/sinks/report.ts';
import { statusReport } from '../../../src/features/status/command.ts';
import { coverageChecks, subscriptionChecks } from '../../../src/features/subscriptions/checks.ts';
import { diskCheck } from '../../../src/store/status.ts';
import { queueState } from '../../admin/sample-queue.ts';
import { openConsole } from '../../core/api/console-context.ts';
import { createStream, nowUs } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { evaluateStatus, statusParts } from '../../helpers/status.ts';
import { covered as comparedHour } from '../alerts/watch-context.ts';
import { readScrape } from '../metrics/metric-samples.ts';
import { activeAlert, dayUs, hourUs, minuteUs, subscription, wellFacts } from './status-facts.ts';

const gib = 2 ** 30;
const well = wellFacts();
type Sink = StatusFacts['sinks'][0];
const [archive] = well.sinks as [Sink];
const [alps] = well.subscriptions as [StatusFacts['subscriptions'][0]];
const [index] = well.readers as [Reader];
type Reader = StatusFacts['readers'][0];
const [covered] = well.coverage as [StatusFacts['coverage'][0]];

/** Changes one fact, which is not null in a healthy receiver. */
const change =
  <Name extends keyof StatusFacts>(name: Name) =>
  (fields: Partial<NonNullable<StatusFacts[Name]>>) =>
    ({ [name]: { ...(well[name] as object), ...fields } }) as Partial<StatusFacts>;
const [log, certificate, summaries] = [change('log'), change('certificate'), change('summaries')];
const receiver = (fields: Partial<NonNullable<StatusFacts['receiver']>>) =>
  change('receiver')({ startedAtUs: null, pid: null, queue: null, ...fields });
const sink = (fields: Partial<Sink>) => ({ sinks: [{ ...archive, ...fields }] });
const reader = (fields: Partial<Reader>) => ({ readers: [{ ...index, ...fields }] });
const named = (fields: Partial<typeof alps>) => ({ subscriptions: [{ ...alps, ...fields }] });
type SubscriptionChanges = [fields?: Fields, changes?: Parameters<typeof subscription>[2]];
type Fields = Parameters<typeof subscription>[1];
const subscribed = (...[fields, changes]: SubscriptionChanges) => ({
  subscriptions: [subscription('alps', fields, changes)],
});
const queue = (failure: string | null, length: number) => {
  const failingSinceUs = failure === null ? null : nowUs - minuteUs;
  return { queue: queueState({ readAtUs: nowUs, length, failure, failingSinceUs }) };
};
const missingHour = { ...comparedHour(0), hourUs: nowUs - 3 * hourUs, comparedAtUs: nowUs };
const disk = (freeBytes: number) => ({
  disk: { freeBytes, totalBytes: 80 * gib, reserveBytes: 2 ** 28 },
});
const made = well.backups?.made ?? null;
const backup = (ageHours: number) => ({
  ...change('backups')({ made: made && { ...made, startedAtUs: nowUs - ageHours * hourUs } }),
});
const failed = (part: string) => ({ failures: [{ part, reason: 'It hangs.' }] });
/** Receivers of a shared log; this one is `b`. */
const receivers = (fault: string | null) => ({
  receivers: ['a', 'b', 'c'].map((name) => ({
    ...{ name, isThis: name === 'b', reportedAtUs: nowUs, lag: name === 'b' ? 7 : 0 },
    ...{ refusing: null, fault: name === 'b' ? fault : null },
  })),
});
/** Coverage of a subscription that began a quarter of an hour ago. */
const none = {
  ...{ ...covered, state: 'not-compared' as const, expected: 0, pushed: 0, late: 0, recovered: 0 },
  ...{ comparedHours: 0, unknownHours: 0, nextDueAtUs: nowUs + hourUs, complete: null },
};
const comparisonOff = 'EARSHOT_RECONCILE is off.';
const refusedAnswer = 'It is empty.';
const alert = (...args: Parameters<typeof activeAlert>) => ({ alerts: [activeAlert(...args)] });

type Row = [part: string, changes: Partial<StatusFacts>, text: string, nextStep?: string];

const healthy: readonly Row[] = [
  ['receiver', {}, 'accepting notifications, up for 12 days (process 4711); last received 2 min'],
  ['receiver', log({ lastReceivedAtUs: null }), 'up for 12 days (process 4711); none received yet'],
  ['receivers', receivers(null), '3 receivers; lag of this one: 7 entries'],
  ['log', {}, 'since 2025-03-28 12:00 UTC, 4.2 GiB; quarantine empty'],
  ['log', log({ quarantined: 1_001 }), '1,001 bodies in quarantine (`earshot quarantine list`)'],
  ['subscriptions', {}, 'alps (running, last notification 2 min ago), sea-ice (running, last'],
  ['subscriptions', named({ state: 'paused', pausedOnPurpose: true }), 'alps (paused on purpose)'],
  ['certificate', certificate({ lastFailure: 'No route.' }), '61 days; the last renewal failed'],
  ['certificate', { behindProxy: true, certificate: null }, 'provided by the proxy'],
  [
    'coverage',
    {},
    '1 hour not compared; 12,004 events expected: none missing, 14 recovered, 3 late',
  ],
  ['coverage', { comparisonOff }, 'automatic comparison is off: EARSHOT_RECONCILE is off'],
  ['coverage', { coverage: [none] }, 'the first is compared at 2026-05-02 13:00 UTC'],
  ['readers', reader({ behind: 1_200, unreadSinceUs: nowUs }), 'lag of product index: 1,200'],
  ['readers', { readers: [] }, 'none'],
  ['sinks', {}, 'archive: queue empty'],
  ['sinks', sink({ waiting: 1_000, lastDeliveredAtUs: nowUs }), 'archive: 1,000 queued'],
  ['summaries', {}, '3 waiting; 1,204 requests and 1,530,020 tokens in 24 h'],
  ['summaries', summaries({ mode: 'off', waiting: 0 }), 'off'],
  ['disk', {}, '41 GiB of 80 GiB free'],
  ['backup', {}, '3 h old, 4.3 GiB, every 24 h'],
  ['backup', { backups: { made: null, failed: null, everyHours: null } }, 'none made yet'],
  ['alerts', {}, 'no active alerts'],
];

/** No fault, but there is something to do. */
const due: readonly Row[] = [
  [
    'coverage',
    { coverage: [{ ...none, nextDueAtUs: nowUs }] },
    'a running receiver compares one within 5 min',
    'Run `earshot reconcile` to compare now.',
  ],
];

const missing = subscribed({ coverage: [{ ...missingHour, missing: 1 }] });
const unregistered = { subscriptions: [], ...log({ lastReceivedAtUs: null }) };
const gone = sink({ fault: 'Gone.' });
const dead = { sinks: ['archive', 'b'].map((name) => ({ ...archive, name, dead: 2 })) };

const warnings: readonly Row[] = [
  ['subscriptions', unregistered, 'No subscription is registered', 'earshot register'],
  ['subscriptions', subscribed(queue('It is down.', 5)), 'alps cannot be read', 'earshot doctor'],
  ['certificate', certificate({ notAfterUs: nowUs + 14 * dayUs }), 'in 14 days', 'show'],
  ['coverage', missing, '1 event of the subscription alps is missing', 'earshot reconcile --since'],
  [
    'readers',
    reader({ behind: 9_999, unreadSinceUs: nowUs - 16 * minuteUs }),
    '9,999 notifications, the oldest received 16 min ago',
    'lag decreases',
  ],
  ['sinks', gone, 'Nothing is delivered to the sink archive', 'earshot doctor'],
  ['sinks', dead, 'refused 2 notifications permanently. (and 1 more)', 'sinks dead'],
  [
    'sinks',
    { configFile: { fault: 'sinks.a: it names no target.', modifiedAtUs: null } },
    'is invalid',
    'earshot',
  ],
  ['sinks', { configFile: { fault: null, modifiedAtUs: nowUs } }, 'has changed since', 'Restart'],
  [
    'summaries',
    summaries({ refusedAnswer }),
    'The texts come from the template. It is empty.',
    'MODEL',
  ],
  ['disk', disk(4 * gib), 'has only 4 GiB of free space', 'Free some space'],
  ['backup', backup(49), 'last backup is 2 days old, although a backup', 'earshot backup'],
  ['alerts', alert('not-running', 'alps'), '1 active: not-running (alps)', 'earshot alerts'],
];

const lossy = ['alps', 'sea-ice'].map((name) => activeAlert('lost-pushes', name, 'critical'));

const critical: readonly Row[] = [
  // A worse current state is more important than an alert.
  ['receiver', { receiver: null, ...alert('intake') }, 'The receiver is not running', 'earshot'],
  ['receiver', receiver({ refusing: 'The disk is full.' }), 'refused: The disk is full.', 'doctor'],
  [
    'receivers',
    receivers('Full.'),
    'applies no entries of the shared log',
    'disk of this receiver',
  ],
  ['subscriptions', subscribed({}, { pausedSeenAtUs: nowUs }), 'alps is not running', 'register'],
  ['coverage', { alerts: lossy }, 'The text of lost-pushes. (and 1 more)', 'about lost-pushes.'],
  ['certificate', { certificate: null }, 'no certificate yet', 'certificate renew'],
  ['disk', disk(gib / 4), 'free space', 'Free some space'],
];

const unknown: readonly Row[] = (['receiver', 'log', 'coverage', 'disk'] as const).map((part) => [
  part,
  failed(part),
  'The state is unknown: It hangs.',
  'earshot doctor',
]);

const byLevel = { ok: [...healthy, ...due], warning: warnings, critical, unknown };
const states = Object.entries(byLevel).flatMap(([level, rows]) =>
  rows.map(([name, changes, words, advice]) => {
    return { level: level as Level, name, changes, words, advice };
  }),
);

/** Returns what the terminal shows, without line breaks. */
async function printed(status: Status): Promise<string> {
  const { output, bytes } = createStream({});
  const io = { stdout: output, stderr: output, env: {} };
  await printReport(io, statusReport(status));
  const config = { level: 'ok', text: '', evidence: [], nextStep: null } as const;
  await printReport(io, sinksReport(status.sinks, { config, nowUs }));
  return bytes().toString();
}

/** Returns the text of a page, without markup. */
const textOf = (page: string) =>
  page
    .replaceAll(/<[^>]*>/g, '')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll('`', '');

/** Returns the texts of the alerts that the watchdog finds for the things of a status. */
function alertTexts({
  subscriptions,
  sinks,
  certificate: cert,
  disk: space,
  backups,
  alerts,
}: Status): string[] {
  const found = <Thing>(checks: readonly Check<Thing>[], subject: string, thing: Thing) =>
    checks.flatMap(({ kind, check }) => {
      const alert = alerts.find((one) => one.kind === kind && one.subject === subject);
      const result = check(thing, { nowUs, upSinceUs: 0, alert });
      return result === null || result === 'unchecked' ? [] : [result.text];
    });
  return [
    ...subscriptions.flatMap((one) =>
      found([...subscriptionChecks, ...coverageChecks], one.name, one),
    ),
    ...sinks.flatMap((one) => found(sinkChecks, one.name, one)),
    ...found([certificateCheck], '', cert),
    ...found([diskCheck], '', space),
    ...(backups === null ? [] : found([backupCheck], '', backups)),
  ];
}

const pages: Partial<Record<string, string>> = {
  ...{ subscriptions: '/subscriptions', certificate: '/subscriptions', sinks: '/sinks' },
  ...{ summaries: '/summaries' },
};

/** Parts whose problems the watchdog finds in the facts of a test. */
const watched: readonly string[] = [
  'subscriptions',
  'certificate',
  'coverage',
  'sinks',
  'disk',
  'backup',
];

it('a healthy receiver has only parts of the level "ok"', () => {
  const { parts } = evaluateStatus(well);
  expect(isOk({ parts })).toBe(true);
  expect(parts.map(({ part }) => part)).toEqual([
    ...['receiver', 'log', 'disk', 'readers', 'subscriptions', 'coverage', 'certificate', 'sinks'],
    ...['summaries', 'backup', 'alerts'],
  ]);
});

it('an active alert keeps its part from the level "ok" until the watchdog resolves it', () => {
  const levelOf = (changes: Partial<StatusFacts>) =>
    evaluateStatus(wellFacts(changes)).parts.find(({ part }) => part === 'disk')?.level;
  expect(levelOf(disk(5.5 * gib))).toBe('ok');
  expect(levelOf({ ...disk(5.5 * gib), ...alert('disk') })).toBe('warning');
});

describe('the evaluation of', () => {
  it.each(states)('$name: $level, $words, is the same everywhere (%#)', async (state) => {
    const { level, name, changes, words, advice } = state;
    const status = evaluateStatus(wellFacts(changes));
    const part = status.parts.find((one) => one.part === name);
    if (part === undefined) throw new Error(`There is no part ${name}.`);
    const { text, nextStep } = part;
    const own = text.replace(/ \(and \d+ more\)$/, '');
    expect(part.level).toBe(level);
    expect(text).toContain(words);
    if (level === 'ok') expect(nextStep).toBe(advice ?? null);
    else expect(nextStep).toContain(advice ?? '?');

    const terminal = await printed(status);
    expect(terminal).toContain(`${name.padEnd(13)}  ${text}\n`);
    if (nextStep !== null) expect(terminal).toContain(`Next: ${nextStep}\n`);

    const { get } = await openConsole({
      ...{
        status: async () => status,
        nowUs: () => nowUs,
        metrics: createMetrics(statusParts, silentLog),
      },
    });
    const { json } = await get('/api/status');
    expect(json).toEqual(JSON.parse(JSON.stringify(toStatusJson(statusParts, status))));
    expect(json.parts).toContainEqual({ ...part, evidence: [...part.evidence] });
    expect(json.ok).toBe(isOk(status));

    if (level !== 'ok' && name !== 'alerts') {
      expect(textOf((await get('/')).text)).toContain(text.replaceAll('`', ''));
    }
    const page = pages[name];
    const isOne = status.subscriptions.length <= 1;
    const hasOwnText = name !== 'subscriptions' || (level !== 'ok' && isOne);
    if (page !== undefined && hasOwnText && (name !== 'sinks' || level !== 'ok')) {
      const shown = textOf((await get(page)).text);
      expect(shown).toContain(
        status.subscriptions.length === 0 ? 'No subscription' : own.replaceAll('`', ''),
      );
    }

    const { value } = readScrape((await get('/metrics')).text);
    const number = { ok: 0, warning: 1, critical: 2, unknown: 3 }[level];
    expect(value('earshot_status_level', { part: name })).toBe(number);

    // There are no alerts of a receiver without a certificate: it is not ready.
    const hasThing =
      status.subscriptions.length > 0 &&
      changes.alerts === undefined &&
      status.certificate?.notAfterUs != null;
    const isFound = hasThing && changes.configFile === undefined && changes.failures === undefined;
    if (level !== 'ok' && watched.includes(name) && isFound)
      expect(alertTexts(status)).toContain(own);
  });

  it('each sink and subscription has its own metric with its level', async () => {
    const changes = { ...sink({ dead: 1 }), ...subscribed({}, { pausedSeenAtUs: nowUs }) };
    const status = evaluateStatus(wellFacts(changes));
    const { value } = readScrape(
      await createMetrics(statusParts, silentLog).scrape(async () => status),
    );
    expect(value('earshot_sink_level', { sink: 'archive' })).toBe(1);
    expect(value('earshot_subscription_level', { subscription: 'alps' })).toBe(2);
  });
});
