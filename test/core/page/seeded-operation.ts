/** Data for the pages about the operation: sinks, dead letters, summaries, alerts, and a paused subscription. */

import { hourUs } from '../../../src/core/terms/dates.ts';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
import type { NewSummaryJob, SummaryOutcome } from '../../../src/features/summary/terms.ts';
import type { Store } from '../../../src/store/store.ts';
import { registrationOf } from '../../admin/samples.ts';
import { doneWith } from '../../features/summary/summary-jobs.ts';
import type { ShownJobs } from '../../helpers/running-jobs.ts';

const dayUs = 24 * hourUs;

/** A text that would act, if it were interpreted, and which turns its direction. */
export const hostileSummary =
  'Clouds cover <img src=x onerror="document.title=1"> 12 % of \u202ethe Alps.';

/** Background jobs with configured sinks and summaries. */
export const seededJobs: ShownJobs = {
  deliveryState: () => ({
    names: ['archive', 'hook'],
    kinds: new Map([
      ['archive', 'command'],
      ['hook', 'webhook'],
    ]),
    fault: null,
  }),
  summaryMode: async () => 'each',
};

/** Adds the data to a store whose log is filled. */
export async function fillOperation(store: Store, now: number): Promise<void> {
  await registerPaused(store, now);
  await deliverToSinks(store, now);
  await summarize(store, now);
  await resolveAlert(store, now);
}

async function registerPaused({ administration }: Store, now: number): Promise<void> {
  const id = '48d5356b-775f-4a97-bbff-9c235ff84573';
  const entry = { subscription: 'andes', subscriptionId: id };
  const filter = "Collection/Name eq 'SENTINEL-1' and contains(Name,'GRD')";
  await administration.commit({
    save: registrationOf({
      credentialsDigest: null,
      ...{ name: 'andes', events: ['created'], filter, status: 'paused', subscriptionId: id },
      ...{ activityAtUs: now - 3 * dayUs, notifiedAtUs: now - 3 * dayUs },
      ...{ runningSeenAtUs: now - 3 * dayUs, pausedSeenAtUs: now - 2 * dayUs },
    }),
    history: [
      {
        ...{ ...entry, atUs: now - 9 * dayUs, action: 'created', actor: 'register' },
        reason: 'It is in earshot.config.ts.',
      },
      {
        ...{ ...entry, atUs: now - 2 * dayUs, action: 'paused', actor: 'subscriptions' },
        reason: 'A user paused it with `earshot subscriptions pause`.',
      },
    ],
    openGap: {
      ...{ subscription: 'andes', events: ['created'], filter, fromUs: now - 2 * dayUs },
      reason: 'The subscription was paused.',
    },
  });
  await administration.markDeliveries([
    { subscription: 'alps', username: 'catalogue', lastAtUs: now - 60_000_000 },
    { subscription: 'old-path', username: 'catalogue', lastAtUs: now - 5 * dayUs },
  ]);
}

/** `hook` has read the log, but refuses: three dead letters, two retries. `archive` has a lag. */
async function deliverToSinks(store: Store, now: number): Promise<void> {
  const { sinks } = store;
  const upTo = await store.lastPosition();
  const rows = await Array.fromAsync(store.find({ limit: 9 }));
  const items = rows.toReversed().map(({ position, productId }) => ({ position, productId }));
  const queued = { replayId: null, after: 0, atUs: now - hourUs };
  await sinks.enqueue({ sink: 'hook', ...queued, upTo, items });
  await sinks.enqueue({ sink: 'archive', ...queued, upTo: upTo - 5, items: [] });
  const due = await sinks.due({ sink: 'hook', nowUs: now, limit: 9 });
  const error = 'The webhook answered 422: <b>unknown tile</b> \u001b[31m';
  await sinks.settle(
    due.map(({ id }, i) => {
      if (i < 3) return { id, outcome: 'dead', error };
      if (i > 4) return { id, outcome: 'acknowledged', deliveredAtUs: now - 300_000_000 };
      const nextAttemptAtUs = now + 600_000_000;
      const refusal = 'The webhook answered 503.';
      return { id, outcome: 'postponed', error: refusal, nextAttemptAtUs, counts: true };
    }),
  );
  // The position is that of a sink which reads: it is stored once more for a reader of the log.
  await store.moveCursor(sinkReader('archive'), upTo - 5, now);
}

async function summarize(store: Store, now: number): Promise<void> {
  const { summaries } = store;
  const rows = await Array.fromAsync(store.find({ limit: 5 }));
  const requested = { scope: null, dueAtUs: now - hourUs };
  const products = rows.map(
    ({ productId, productName, subscription, position }): NewSummaryJob => ({
      ...{ kind: 'product', subject: productId.toLowerCase(), productId, productName },
      ...{ ...requested, subscription, position },
    }),
  );
  const digest: NewSummaryJob = {
    ...{ ...requested, kind: 'digest', subject: 'digest', productId: null, productName: null },
    scope: { fromUs: now - dayUs, untilUs: now, subscription: 'alps', filter: null },
    ...{ subscription: 'alps', position: 1 },
  };
  const jobs = [digest, ...products];
  const { ids } = await summaries.enqueue({ jobs, waitingMax: 100, atUs: now - hourUs });
  const by = { model: 'openai/gpt-oss', createdAtUs: now - hourUs / 2 };
  const results: SummaryOutcome[] = [
    doneWith('187 products of Sentinel-2 arrived.', by),
    doneWith('A Sentinel-2 scene with few clouds.', by),
    doneWith(hostileSummary, by),
    doneWith('Sentinel-2A.', { ...by, model: null }, { reason: 'The answer was refused.' }),
    { outcome: 'postponed', dueAtUs: now + hourUs, reason: 'Not reached.', text: null },
  ];
  for (const [i, result] of results.entries()) {
    await summaries.settle({ job: { id: ids[i] ?? 0, revision: 1 }, result });
  }
}

async function resolveAlert({ alerts }: Store, now: number): Promise<void> {
  const finding = {
    kind: 'disk',
    subject: '',
    level: 'warning',
    text: 'The disk is nearly full.',
    evidence: ['3.9 GiB of 80 GiB are free.'],
    nextStep: 'Free space with `earshot prune`.',
  } as const;
  const settled = { checked: [finding], channels: ['url'] } as const;
  await alerts.settleFindings({ ...settled, findings: [finding], atUs: now - 2 * dayUs });
  await alerts.settleFindings({ ...settled, findings: [], atUs: now - dayUs });
}
