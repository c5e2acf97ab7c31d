/** Data for the pages about the operation: registrations, sinks, dead letters, summaries and alerts. */

import type { Registration } from '../../../src/admin/account.ts';
import { hourUs } from '../../../src/core/terms/dates.ts';
import type { NotificationRow } from '../../../src/core/terms/ports.ts';
import { sinkReader } from '../../../src/features/sinks/terms.ts';
import type {
  DigestScope,
  NewSummaryJob,
  SummaryOutcome,
} from '../../../src/features/summary/terms.ts';
import type { Store } from '../../../src/store/store.ts';
import { registrationOf } from '../../admin/samples.ts';
import { doneWith } from '../../features/summary/summary-jobs.ts';
import type { ShownJobs } from '../../helpers/running-jobs.ts';

const dayUs = 24 * hourUs;

/** A text that would act, if it were interpreted, and which turns its direction. */
export const hostileSummary =
  'Clouds cover <img src=x onerror="document.title=1"> 12 % of \u202ethe Alps.';

export const diskFinding = {
  ...({ kind: 'disk', subject: '', level: 'warning', text: 'The disk is nearly full.' } as const),
  evidence: ['3.9 GiB of 80 GiB are free.'],
  nextStep: 'Free space with `earshot prune`.',
};

/** Background jobs with summaries, and sinks of these names and kinds. */
export const jobsWith = (sinks: Record<string, string>): ShownJobs => ({
  deliveryState: () => ({
    ...{ names: Object.keys(sinks), fault: null },
    kinds: new Map(Object.entries(sinks)),
  }),
});

/** Registers a running subscription, whose last notification arrived at `latestUs`. */
export async function registerRunning(
  { administration }: Store,
  registered: Pick<Registration, 'name' | 'events' | 'filter' | 'subscriptionId'>,
  { sinceUs, latestUs, nowUs }: { sinceUs: number; latestUs: number; nowUs: number },
): Promise<void> {
  const { name: subscription, subscriptionId } = registered;
  const activity = { activityAtUs: latestUs, notifiedAtUs: latestUs, runningSeenAtUs: nowUs };
  await administration.commit({
    save: registrationOf({ credentialsDigest: null, ...registered, ...activity }),
    history: [
      {
        ...{ atUs: sinceUs, subscription, subscriptionId, action: 'created', actor: 'register' },
        reason: 'It is in earshot.config.ts.',
      },
    ],
  });
}

/** Delivers the newest notifications to a sink: it refuses the first ones, and the last ones are retried. */
export async function deliverTo(
  store: Store,
  sink: string,
  given: { count: number; dead?: number; retried?: number; error?: string; nowUs: number },
): Promise<void> {
  const { count, dead = 0, retried = 0, error = '', nowUs } = given;
  const upTo = await store.lastPosition();
  const rows = await Array.fromAsync(store.find({ limit: count }));
  const items = rows.toReversed().map(({ position, productId }) => ({ position, productId }));
  await store.sinks.enqueue({ sink, replayId: null, after: 0, atUs: nowUs - hourUs, upTo, items });
  const due = await store.sinks.due({ sink, nowUs, limit: count });
  const later = { nextAttemptAtUs: nowUs + 600_000_000, counts: true };
  await store.sinks.settle(
    due.map(({ id }, i) => {
      if (i < dead) return { id, outcome: 'dead', error };
      if (i < count - retried) return { id, outcome: 'acknowledged' };
      return { id, outcome: 'postponed', error: 'The webhook answered 503.', ...later };
    }),
    nowUs - 300_000_000,
  );
  await store.moveCursor(sinkReader(sink), upTo, nowUs);
}

/** Requests a digest and summaries of products, an hour ago, and settles them with these results. */
export async function summarize(
  { summaries }: Store,
  rows: readonly NotificationRow[],
  { scope, nowUs, results }: { scope: DigestScope; nowUs: number; results: SummaryOutcome[] },
): Promise<void> {
  const atUs = nowUs - hourUs;
  const products = rows.map(
    ({ productId, productName, subscription, position }): NewSummaryJob => ({
      ...{ kind: 'product', subject: productId.toLowerCase(), productId, productName },
      ...{ subscription, position, scope: null, dueAtUs: atUs },
    }),
  );
  const digest: NewSummaryJob = {
    ...{ kind: 'digest', subject: 'digest', productId: null, productName: null, scope },
    ...{ subscription: scope.subscription, position: 1, dueAtUs: atUs },
  };
  const { ids } = await summaries.enqueue({ jobs: [digest, ...products], waitingMax: 100, atUs });
  for (const [i, result] of results.entries()) {
    await summaries.settle({ job: { id: ids[i] ?? 0, revision: 1 }, result });
  }
}

/** Adds the data to a store whose log is filled. */
export async function fillOperation(store: Store, now: number): Promise<void> {
  await registerPaused(store, now);
  const error = 'The webhook answered 422: <b>unknown tile</b> \u001b[31m';
  await deliverTo(store, 'hook', { count: 9, dead: 3, retried: 2, error, nowUs: now });
  // `archive` has a lag.
  const upTo = (await store.lastPosition()) - 5;
  await store.sinks.enqueue({
    sink: 'archive',
    replayId: null,
    after: 0,
    upTo,
    items: [],
    atUs: now,
  });
  await store.moveCursor(sinkReader('archive'), upTo, now);
  const by = { model: 'openai/gpt-oss', createdAtUs: now - hourUs / 2 };
  await summarize(store, await Array.fromAsync(store.find({ limit: 5 })), {
    scope: { fromUs: now - dayUs, untilUs: now, subscription: 'alps', filter: null },
    nowUs: now,
    results: [
      doneWith('187 products of Sentinel-2 arrived.', by),
      doneWith('A Sentinel-2 scene with few clouds.', by),
      doneWith(hostileSummary, by),
      doneWith('Sentinel-2A.', { ...by, model: null }, { reason: 'The answer was refused.' }),
      {
        outcome: 'postponed',
        by: 'service',
        dueAtUs: now + hourUs,
        reason: 'Not reached.',
        text: null,
      },
    ],
  });
  const settled = { checked: [diskFinding], channels: ['url'] } as const;
  await store.alerts.settleFindings({ ...settled, findings: [diskFinding], atUs: now - 2 * dayUs });
  await store.alerts.settleFindings({ ...settled, findings: [], atUs: now - dayUs });
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
