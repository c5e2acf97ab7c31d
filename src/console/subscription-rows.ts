/** Subscriptions as the receiver knows them: registered ones, and paths that received notifications. */
import type { AdministrationReader, Gap, HistoryEntry, Registration } from '../domain/account.ts';
import { formatDateUs } from '../domain/dates.ts';
import type { Status, SubscriptionStatus } from '../domain/status.ts';
import { endpointOf } from '../domain/subscription.ts';

/** States of `/api/status`, and `unregistered`: the path received notifications without a registration. */
export const subscriptionStates = [
  'running',
  'paused',
  'unfinished',
  'absent',
  'unregistered',
] as const;

export interface SubscriptionRow {
  /** Null for `/notifications` without a name. */
  name: string | null;
  /** Null when the status could not be read. */
  state: (typeof subscriptionStates)[number] | null;
  registration: Registration | null;
  status: SubscriptionStatus | null;
  /** State of the queue of a pull subscription; null for push, and before the first read. */
  queue: Status['queues'][number] | null;
  /** User names that delivered to the path, the last one first. */
  senders: { username: string; lastAtUs: number }[];
  /** Newest first. */
  gaps: Gap[];
  history: HistoryEntry[];
}

/** Maximum history per subscription. */
export const historyMax = 50;

/** Reads the rows, sorted by name: registered ones first, the path without a name last. Rejects with `unavailable`. */
export async function readSubscriptionRows(
  administration: AdministrationReader,
  { subscriptions, queues }: Pick<Status, 'subscriptions' | 'queues'>,
): Promise<SubscriptionRow[]> {
  const [registrations, marks, gaps] = await Promise.all([
    administration.registrations(),
    administration.deliveryMarks(),
    administration.gaps(),
  ]);
  const registered = registrations.map(({ name }): string | null => name);
  const others = new Set(marks.map(({ subscription }) => subscription));
  for (const name of registered) others.delete(name);
  const named = [...others].filter((name) => name !== null).toSorted();
  const names = [...registered, ...named, ...(others.has(null) ? [null] : [])];
  return Promise.all(
    names.map(async (name) => {
      const registration = registrations.find((one) => one.name === name) ?? null;
      const status = subscriptions.find((one) => one.name === name) ?? null;
      const history = { subscription: name ?? '', limit: historyMax };
      return {
        name,
        state: registration === null ? 'unregistered' : (status?.state ?? null),
        registration,
        status,
        queue: queues.find(({ subscription }) => subscription === name) ?? null,
        senders: marks
          // A queue is read without a user name.
          .filter(({ subscription, username }) => subscription === name && username !== '')
          .map(({ username, lastAtUs }) => ({ username, lastAtUs }))
          .toSorted((a, b) => b.lastAtUs - a.lastAtUs),
        gaps: gaps.filter(({ subscription }) => subscription === name).toReversed(),
        history: name === null ? [] : await administration.history(history),
      };
    }),
  );
}

/** Returns the path of the public listener to which the catalogue pushes. */
export function pathOf(name: string | null): string {
  return name === null ? '/notifications' : endpointOf('', name);
}

/** Converts a row to JSON, with times as ISO 8601 UTC. */
export function toSubscriptionJson(row: SubscriptionRow) {
  const { name, registration, status, queue, senders } = row;
  return {
    name,
    id: registration?.subscriptionId ?? null,
    state: row.state,
    type: registration?.type ?? 'push',
    events: registration === null ? null : [...registration.events],
    filter: registration?.filter ?? null,
    path: registration?.type === 'pull' ? null : pathOf(name),
    changedByPerson: registration?.changedByPerson === true,
    runningSeenAt: timeOf(registration?.runningSeenAtUs),
    pausedSeenAt: timeOf(registration?.pausedSeenAtUs),
    lastDeliveryAt: timeOf(status?.lastDeliveryAtUs ?? senders[0]?.lastAtUs),
    pausesAt: timeOf(status?.pausesAtUs),
    cancelsAt: timeOf(status?.cancelsAtUs),
    queue: queue === null ? null : toQueueJson(queue),
    senders: senders.map(({ username, lastAtUs }) => ({
      username,
      lastAt: formatDateUs(lastAtUs),
    })),
    gaps: row.gaps.map(({ fromUs, toUs, reason }) => ({
      from: formatDateUs(fromUs),
      to: timeOf(toUs),
      reason,
    })),
    history: row.history.map(({ atUs, subscriptionId, action, actor, reason }) => ({
      at: formatDateUs(atUs),
      ...{ subscriptionId, action, actor, reason },
    })),
  };
}

function toQueueJson(queue: Status['queues'][number]) {
  const { length, lengthMax, entriesPerHour, failure, otherReader } = queue;
  return {
    length,
    lengthMax,
    oldestAt: timeOf(queue.oldestAtUs),
    emptiedAt: timeOf(queue.emptiedAtUs),
    readAt: timeOf(queue.readAtUs),
    entriesPerHour,
    failure,
    otherReaderAt: timeOf(otherReader?.atUs),
  };
}

function timeOf(us: number | null | undefined): string | null {
  return us == null ? null : formatDateUs(us);
}
