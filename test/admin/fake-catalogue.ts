/**
 * A catalogue account in memory that follows the specification: the transition table, the limits,
 * the editable fields, and the changes after 60 and 365 days.
 */

import type { AccountLimits } from '../../src/admin/differences.ts';
import type {
  CatalogueSubscription,
  NewSubscription,
  SubscriptionClient,
  SubscriptionEdit,
} from '../../src/admin/subscription-client.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import type { CredentialPair } from '../../src/core/terms/ports.ts';

const dayUs = 86_400_000_000;

/** A subscription with the fields that only the catalogue knows. */
export interface FakeSubscription extends CatalogueSubscription {
  credentials: CredentialPair | null;
  /** Time of the last resumption after the creation. */
  resumedAtUs: number | null;
}

export function createFakeCatalogue(options: {
  subscriptions: readonly FakeSubscription[];
  limits: AccountLimits;
  nowUs: () => number;
  /** True when the list contains `LastNotificationDate`, which the specification does not guarantee. */
  showsLastNotification: boolean;
}) {
  const { limits, nowUs, showsLastNotification } = options;
  const account = new Map(options.subscriptions.map((one) => [one.id, { ...one }]));
  /** Requests that change the account, in order: "create alps running", "edit id-1 status=paused". */
  const writes: string[] = [];
  /** Requests refused because of the limits. */
  const refusals: string[] = [];
  let created = 0;

  const find = (id: string): FakeSubscription => {
    lapse(account, nowUs());
    const found = account.get(id);
    if (found !== undefined && found.status !== 'cancelled') return found;
    throw new AppError('not_found', `Subscription with id ${id} not found.`);
  };
  const requireCapacity = (what: 'running' | 'total', who: string) => {
    const alive = [...account.values()].filter(({ status }) => status !== 'cancelled');
    const running = alive.filter(({ status }) => status === 'running').length;
    const full =
      what === 'running' ? running >= limits.runningMax : alive.length >= limits.totalMax;
    if (!full) return;
    refusals.push(`${who}: ${what}`);
    throw new AppError('invalid', `The limit of ${what} subscriptions is reached.`);
  };
  const create = (requested: NewSubscription): FakeSubscription => {
    lapse(account, nowUs());
    const who = requested.address?.endpoint ?? 'pull';
    requireCapacity('total', who);
    if (requested.status === 'running') requireCapacity('running', who);
    created += 1;
    const subscription = subscriptionFrom(requested, `made-${created}`, nowUs());
    account.set(subscription.id, subscription);
    return subscription;
  };
  const edit = (id: string, changes: SubscriptionEdit) => {
    const subscription = find(id);
    const { status, ...rest } = changes;
    if (subscription.type === 'pull' && Object.keys(rest).length > 0) {
      throw new AppError('invalid', 'A pull subscription has no endpoint.');
    }
    if (status === 'running' && subscription.status !== 'running') {
      requireCapacity('running', id);
      subscription.resumedAtUs = nowUs();
    }
    Object.assign(subscription, changes);
  };
  const shown = ({
    credentials: _,
    resumedAtUs: __,
    ...one
  }: FakeSubscription): CatalogueSubscription =>
    showsLastNotification ? one : { ...one, lastNotificationAtUs: null };
  const list = () => {
    lapse(account, nowUs());
    return [...account.values()];
  };
  const client: SubscriptionClient = {
    list: async () => list().map(shown),
    create: async (requested) => {
      writes.push(`create ${nameOf(requested)} ${requested.status}`);
      return shown(create(requested));
    },
    edit: async (id, changes) => {
      writes.push(`edit ${id} ${wordsOf(changes)}`);
      edit(id, changes);
    },
    delete: async (id) => {
      writes.push(`delete ${id}`);
      account.delete(id);
    },
  };
  return {
    client,
    /** Copies, oldest first, after the changes that are due by time. */
    subscriptions: () => list().map((one) => ({ ...one })),
    /** Changes a subscription as a person or another program does; checks no rule. */
    put: (subscription: FakeSubscription) => void account.set(subscription.id, { ...subscription }),
    writes,
    refusals,
  };
}

/** Counts from the last notification or the creation; a resumption counts as activity. */
function lapse(account: Map<string, FakeSubscription>, nowUs: number): void {
  for (const one of account.values()) {
    const notifiedAtUs = one.lastNotificationAtUs ?? one.submittedAtUs ?? nowUs;
    const activeAtUs = Math.max(notifiedAtUs, one.resumedAtUs ?? 0);
    if (nowUs >= notifiedAtUs + 365 * dayUs) account.delete(one.id);
    else if (one.status === 'running' && nowUs >= activeAtUs + 60 * dayUs) one.status = 'paused';
  }
}

function subscriptionFrom(requested: NewSubscription, id: string, nowUs: number): FakeSubscription {
  const { events, address, ...rest } = requested;
  return {
    ...{ ...rest, id, type: address === null ? 'pull' : 'push', events: [...events] },
    endpoint: address?.endpoint ?? null,
    credentials: address?.credentials ?? null,
    submittedAtUs: nowUs,
    lastNotificationAtUs: null,
    resumedAtUs: null,
  };
}

const nameOf = ({ address }: NewSubscription) =>
  address === null ? 'pull' : address.endpoint.slice(address.endpoint.lastIndexOf('/') + 1);

function wordsOf({ status, endpoint, credentials }: SubscriptionEdit): string {
  return [
    ...(status === undefined ? [] : [`status=${status}`]),
    ...(endpoint === undefined ? [] : ['endpoint']),
    ...(credentials === undefined ? [] : ['credentials']),
  ].join(' ');
}
