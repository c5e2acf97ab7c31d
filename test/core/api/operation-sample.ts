/** Readers with a registration, paths without one, alerts and quarantined bodies, in memory. */
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { QuarantineEntry } from '../../../src/core/terms/ports.ts';
import type { AlertQuery, ListedAlert } from '../../../src/features/alerts/terms.ts';
import { registration as registrationOf } from '../../features/alerts/watch-context.ts';
import { createMemoryOperations } from './console-context.ts';

export const seenUs = Date.UTC(2026, 4, 1) * 1000;

export const registration = registrationOf({
  ...{ events: ['created'], filter: "Collection/Name eq 'SENTINEL-2'", subscriptionId: 'an-id' },
  ...{ credentialsDigest: 'a-digest', activityAtUs: seenUs, notifiedAtUs: seenUs },
  ...{ runningSeenAtUs: seenUs, pausedSeenAtUs: seenUs, changedByPerson: true },
});

export function alertRow(id: number, changes: Partial<ListedAlert> = {}): ListedAlert {
  return {
    ...{ id, kind: 'not-running', subject: 'alps', level: 'warning', text: 'It is silent.' },
    ...{ evidence: ['Usually 20 an hour.'], nextStep: 'Run `earshot doctor`.' },
    raisedAtUs: seenUs,
    resolvedAtUs: null,
    channels: [{ channel: 'url' as const, sent: 'warning' as const, error: null }],
    ...changes,
  };
}

export function quarantineRow(id: number): QuarantineEntry {
  const body = new TextEncoder().encode(`body ${id}`);
  return {
    ...{ id, receivedAtUs: seenUs, subscription: 'alps', source: 'push', reason: 'not-json' },
    faults: [{ code: 'not-json', index: null, message: 'The body is not JSON.' }],
    bodyBytes: body.length,
    ...{ headers: ['Content-Type', 'text/plain'], body },
  };
}

/** Alerts and bodies with these ids. */
export function filledOperations({ alerts = [1, 2], bodies = [1, 2] } = {}) {
  const none = createMemoryOperations();
  const entry = { subscription: 'alps', subscriptionId: 'an-id', atUs: seenUs };
  const newestFirst = (ids: readonly number[]) => ids.toSorted((a, b) => b - a);
  const asked: AlertQuery[] = [];
  return {
    asked,
    sinks: none.sinks,
    administration: {
      registrations: async () => [registration],
      deliveryMarks: async () => [
        { subscription: 'alps', username: 'old', lastAtUs: seenUs },
        { subscription: 'alps', username: 'new', lastAtUs: seenUs + 1 },
        { subscription: 'old-path', username: 'old', lastAtUs: seenUs },
        { subscription: null, username: 'old', lastAtUs: seenUs },
      ],
      gaps: async () => [
        {
          ...{ id: 1, subscription: 'alps', events: ['created'], filter: '' },
          ...{ fromUs: seenUs, toUs: seenUs + 1, reason: 'It was paused.' },
        },
      ],
      history: async ({ subscription }: { subscription?: string }) =>
        subscription === 'alps'
          ? [{ ...entry, action: 'created' as const, actor: 'register' as const, reason: 'New.' }]
          : [],
      queues: none.administration.queues,
    },
    alerts: {
      ...none.alerts,
      alerts: async (query: AlertQuery) => {
        asked.push(query);
        const { beforeId = Number.POSITIVE_INFINITY, limit } = query;
        const ids = newestFirst(alerts).filter((id) => id < beforeId);
        return ids.slice(0, limit).map((id) => alertRow(id));
      },
    },
    quarantine: {
      async *quarantined(query: { beforeId?: number | undefined; limit?: number | undefined }) {
        const { beforeId = Number.POSITIVE_INFINITY, limit } = query;
        const ids = newestFirst(bodies).filter((id) => id < beforeId);
        yield* ids.slice(0, limit).map(quarantineRow);
      },
      quarantinedCount: async () => bodies.length,
      quarantineEntry: async (id: number) => {
        if (!bodies.includes(id)) throw new AppError('not_found', 'There is no such body.');
        return quarantineRow(id);
      },
    },
  };
}
