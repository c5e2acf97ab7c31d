/** Terminal, JSON, API, page, metrics and alerts give the same evaluation of the same thing, in each of its states. */
import { describe, expect, it } from 'vitest';
import { printReport } from '../../../src/core/cli/print-report.ts';
import type { Check } from '../../../src/core/terms/check.ts';
import type { Level } from '../../../src/core/terms/evaluation.ts';
import { createMetrics } from '../../../src/features/metrics/metrics.ts';
import { sinkChecks, sinksReport } from '../../../src/features/sinks/report.ts';
import { statusReport } from '../../../src/features/status/command.ts';
import { backupCheck, certificateCheck, diskCheck } from '../../../src/features/status/machine.ts';
import { evaluateStatus } from '../../../src/features/status/parts.ts';
import {
  isOk,
  type Status,
  type StatusFacts,
  type StatusPart,
  toStatusJson,
} from '../../../src/features/status/status.ts';
import { coverageChecks, subscriptionChecks } from '../../../src/features/subscriptions/checks.ts';
import { queueState } from '../../admin/sample-queue.ts';
import { log, openConsole } from '../../core/api/console-context.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { covered } from '../alerts/watch-context.ts';
import { readScrape } from '../metrics/metric-samples.ts';
import { activeAlert, dayUs, hourUs, minuteUs, subscription, wellFacts } from './status-facts.ts';

const gib = 2 ** 30;
const well = wellFacts();
const [archive] = well.sinks as [StatusFacts['sinks'][0]];
const sink = (fields: Partial<typeof archive>) => ({ sinks: [{ ...archive, ...fields }] });
const subscribed = (...args: Parameters<typeof subscription>) => ({
  subscriptions: [subscription(...args)],
});
const queue = (failure: string | null, length: number) => ({
  ...queueState({
    readAtUs: nowUs,
    length,
    failure,
    failingSinceUs: failure === null ? null : nowUs - minuteUs,
  }),
});
const missingHour = { ...covered(0), hourUs: nowUs - 3 * hourUs, comparedAtUs: nowUs, missing: 2 };
const certificate = (leftDays: number) => ({
  certificate: well.certificate && {
    ...well.certificate,
    ...{ notAfterUs: nowUs + leftDays * dayUs, lastFailure: 'Port 80 is closed.' },
  },
});
const disk = (freeBytes: number) => ({
  disk: { freeBytes, totalBytes: 80 * gib, reserveBytes: 2 ** 28 },
});
const backup = (ageHours: number) => ({
  backups: well.backups && {
    ...well.backups,
    made: well.backups.made && {
      ...well.backups.made,
      startedAtUs: nowUs - ageHours * hourUs,
    },
  },
});
const failed = (part: StatusPart) => ({ failures: [{ part, reason: 'It hangs.' }] });

type State = [part: StatusPart, level: Level, changes: Partial<StatusFacts>];

const states: readonly State[] = [
  ['receiver', 'ok', {}],
  ['receiver', 'critical', { receiver: null }],
  ['receiver', 'critical', { alerts: [activeAlert('intake', '', 'critical')] }],
  ['receiver', 'unknown', failed('receiver')],
  ['log', 'ok', {}],
  ['log', 'unknown', failed('log')],
  ['subscriptions', 'ok', {}],
  [
    'subscriptions',
    'warning',
    { subscriptions: [], log: well.log && { ...well.log, lastReceivedAtUs: null } },
  ],
  ['subscriptions', 'critical', subscribed('alps', {}, { pausedSeenAtUs: nowUs })],
  ['subscriptions', 'critical', subscribed('alps', { id: null }, { subscriptionId: null })],
  ['subscriptions', 'critical', subscribed('alps', {}, { unfinished: true })],
  [
    'subscriptions',
    'warning',
    subscribed('alps', {}, { activityAtUs: nowUs - 47 * dayUs, notifiedAtUs: nowUs - 47 * dayUs }),
  ],
  ['subscriptions', 'warning', subscribed('alps', { queue: queue('It is down.', 5) })],
  ['subscriptions', 'critical', subscribed('alps', { queue: queue(null, 80_000) })],
  ['subscriptions', 'critical', { alerts: [activeAlert('silence', 'alps', 'critical')] }],
  ['certificate', 'ok', {}],
  ['certificate', 'warning', certificate(14)],
  ['certificate', 'critical', certificate(-1)],
  ['coverage', 'ok', {}],
  ['coverage', 'warning', subscribed('alps', { coverage: [missingHour] })],
  ['coverage', 'unknown', failed('coverage')],
  ['readers', 'ok', {}],
  [
    'readers',
    'warning',
    { readers: well.readers.map((one) => ({ ...one, behind: 9, unreadSinceUs: nowUs - dayUs })) },
  ],
  ['sinks', 'ok', {}],
  [
    'sinks',
    'ok',
    sink({
      waiting: 9,
      oldestLiveWaitingAtUs: nowUs - minuteUs,
      lastDeliveredAtUs: nowUs - minuteUs,
    }),
  ],
  ['sinks', 'warning', sink({ fault: 'Its secret is gone.' })],
  [
    'sinks',
    'warning',
    sink({ waiting: 5, failingSinceUs: nowUs - minuteUs, lastError: 'it answered 502' }),
  ],
  [
    'sinks',
    'critical',
    sink({ waiting: 5, failingSinceUs: nowUs - 7 * hourUs, lastError: 'it answered 502' }),
  ],
  ['sinks', 'warning', sink({ dead: 2, lastError: 'it answered 422' })],
  ['sinks', 'warning', sink({ isSetUp: false, waiting: 3 })],
  ['sinks', 'warning', { rejectedConfig: 'sinks.a: it names no target.' }],
  ['summaries', 'ok', {}],
  [
    'summaries',
    'warning',
    {
      summaries: well.summaries && {
        ...well.summaries,
        refusedAnswer: { model: 'a/b', refused: 'it is empty', answer: '' },
      },
    },
  ],
  ['disk', 'ok', {}],
  ['disk', 'warning', disk(4 * gib)],
  ['disk', 'critical', disk(gib / 4)],
  ['backup', 'ok', {}],
  ['backup', 'warning', backup(49)],
  ['alerts', 'warning', { alerts: [activeAlert('silence', 'alps')] }],
];

/** Returns what the terminal shows, without line breaks. */
async function printed(status: Status): Promise<string> {
  let text = '';
  const output = {
    ...{ isTTY: false, once: () => undefined },
    write: (chunk: unknown) => {
      text += String(chunk);
      return true;
    },
  };
  const io = { stdout: output, stderr: output, env: {} };
  await printReport(io, statusReport(status));
  const config = { level: 'ok', text: '', evidence: [], nextStep: null } as const;
  await printReport(io, sinksReport(status.sinks, { config, nowUs }));
  return text;
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

const pages: Partial<Record<StatusPart, string>> = {
  ...{ subscriptions: '/subscriptions', certificate: '/subscriptions', sinks: '/sinks' },
  ...{ summaries: '/summaries' },
};

/** Parts whose problems the watchdog finds in the facts of a test. */
const watched: readonly StatusPart[] = [
  'subscriptions',
  'certificate',
  'coverage',
  'sinks',
  'disk',
  'backup',
];

describe('the evaluation of', () => {
  it.each(states)('%s that is %s is the same everywhere (%#)', async (name, level, changes) => {
    const status = evaluateStatus(wellFacts(changes));
    const part = status.parts.find((one) => one.part === name);
    if (part === undefined) throw new Error(`There is no part ${name}.`);
    const { text, nextStep } = part;
    expect(part.level).toBe(level);

    const terminal = await printed(status);
    expect(terminal).toContain(`${name.padEnd(13)}  ${text}\n`);
    if (nextStep !== null) expect(terminal).toContain(`Next: ${nextStep}\n`);

    const { get } = await openConsole({
      ...{ status: async () => status, nowUs: () => nowUs, metrics: createMetrics(log) },
    });
    const { json } = await get('/api/status');
    expect(json).toEqual(JSON.parse(JSON.stringify(toStatusJson(status))));
    expect(json.parts).toContainEqual({ ...part, evidence: [...part.evidence] });
    expect(json.ok).toBe(isOk(status));

    if (level !== 'ok' && name !== 'alerts') {
      expect(textOf((await get('/')).text)).toContain(text.replaceAll('`', ''));
    }
    const page = pages[name];
    const isOne = status.subscriptions.length <= 1 && !text.includes('(and ');
    const hasOwnText = name !== 'subscriptions' || (level !== 'ok' && isOne);
    if (page !== undefined && hasOwnText && (name !== 'sinks' || level !== 'ok')) {
      const shown = textOf((await get(page)).text);
      expect(shown).toContain(
        status.subscriptions.length === 0 ? 'No subscription' : text.replaceAll('`', ''),
      );
    }

    const { value } = readScrape((await get('/metrics')).text);
    const number = { ok: 0, warning: 1, critical: 2, unknown: 3 }[level];
    expect(value('earshot_status_level', { part: name })).toBe(number);

    const hasThing = status.subscriptions.length > 0 && changes.alerts === undefined;
    const isFound =
      hasThing && changes.rejectedConfig === undefined && changes.failures === undefined;
    if (level !== 'ok' && watched.includes(name) && isFound)
      expect(alertTexts(status)).toContain(text);
  });

  it('each sink and subscription has its own metric with its level', async () => {
    const changes = { ...sink({ dead: 1 }), ...subscribed('alps', {}, { pausedSeenAtUs: nowUs }) };
    const status = evaluateStatus(wellFacts(changes));
    const { value } = readScrape(await createMetrics(log).scrape(async () => status));
    expect(value('earshot_sink_level', { sink: 'archive' })).toBe(1);
    expect(value('earshot_subscription_level', { subscription: 'alps' })).toBe(2);
  });
});
