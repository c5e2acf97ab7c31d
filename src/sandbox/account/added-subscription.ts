/** A subscription that is put into the account from outside: one that a stranger made there. */
import { z } from 'zod';
import { notificationEvents } from '../delivery/notification.ts';
import { subscriptionTypes } from './subscription.ts';
import type { NewSubscription } from './subscriptions.ts';

const date = z.iso.datetime({ error: 'expected a date like 2026-05-01T12:00:00.000Z' });

/** What it is made of; a push subscription needs an endpoint. Unknown names are an error. */
export const addedSubscriptionSchema = z
  .strictObject({
    type: z.enum(subscriptionTypes).default('push'),
    status: z.enum(['running', 'paused']).default('running'),
    events: z.array(z.enum(notificationEvents)).min(1).default(['created']),
    filter: z.string().default(''),
    /** Under the same rules as an endpoint that is registered. */
    endpoint: z.string().optional(),
    username: z.string().nullable().default(null),
    password: z.string().nullable().default(null),
    /** Made by the account unless told. */
    id: z.guid().optional(),
    /** ISO 8601, UTC; now unless told. */
    submissionDate: date.optional(),
    lastNotificationDate: date.optional(),
  })
  .refine(({ type, endpoint }) => (type === 'push') === (endpoint !== undefined), {
    path: ['endpoint'],
    error: 'a push subscription needs one, a pull subscription has none',
  });

/** Any selection of the above. */
export type AddedSubscription = z.input<typeof addedSubscriptionSchema>;

/** Turns a checked one into what the account takes. */
export function toNewSubscription(
  added: z.output<typeof addedSubscriptionSchema>,
): NewSubscription {
  const { status, events, filter, endpoint, username, password, id } = added;
  return {
    status,
    events,
    filter,
    stageOrder: false,
    address: endpoint === undefined ? null : { endpoint, username, password },
    id,
    submittedMs: toMs(added.submissionDate),
    lastNotificationMs: toMs(added.lastNotificationDate),
  };
}

function toMs(iso: string | undefined): number | undefined {
  return iso === undefined ? undefined : Date.parse(iso);
}
