/** The state of registered subscriptions, read from the store. */
import { z } from 'zod';
import type { AdministrationReader, DeliveryMark, Registration } from '../../admin/account.ts';
import { lastDeliveryOf, lifetimeOf } from '../../admin/account.ts';
import { hourOf } from '../../core/terms/dates.ts';
import { evaluationSchema } from '../../core/terms/evaluation.ts';
import { endpointOf, subscriptionTypes } from '../../core/terms/subscription.ts';
import {
  type CompletenessReader,
  comparisonHorizonUs,
  type HourCoverage,
} from '../coverage/completeness.ts';
import { type Span, without } from './pushes.ts';

const count = z.int().min(0);
const timeUs = z.number().nullable();
const reason = z.string().nullable();

/** State of the queue of a pull subscription (admin/pull-queue.ts). */
const queueSchema = z.object({
  length: count.nullable().describe('Number of unread entries; null before the first answer.'),
  lengthMax: count.describe('With more entries, the catalogue drops the oldest ones.'),
  oldestAtUs: timeUs.describe('NotificationDate of the oldest unread entry; null without one.'),
  emptiedAtUs: timeUs.describe('Time when the queue was last read to its end.'),
  readAtUs: timeUs.describe('Time of the last successful request.'),
  entries: count.describe('Number of entries that were stored and acknowledged since the start.'),
  failure: reason.describe('Error of the last request; null if the request succeeded.'),
  failingSinceUs: timeUs,
});

const sendersSchema = z
  .array(z.object({ username: z.string(), lastAtUs: z.number() }))
  .describe('User names that pushed to the path, the last one first.');

/** A registered subscription, in `/api/status`, `/api/subscriptions` and on the page. */
export const subscriptionSchema = z.object({
  name: z.string(),
  id: z.string().nullable().describe('Id in the catalogue; null if none is known.'),
  state: z
    .enum(['running', 'paused', 'unfinished', 'absent'])
    .describe(
      'Last known state. `unfinished`: a change of the subscription is not complete. `absent`: not in the catalogue.',
    ),
  pausedOnPurpose: z.boolean().describe('True if the desired state is paused.'),
  changedByPerson: z
    .boolean()
    .describe(
      'True if a person changed the status in the catalogue, which maintenance then keeps.',
    ),
  type: z.enum(subscriptionTypes),
  events: z.array(z.string()),
  filter: z.string().describe('Filter expression; empty for all products.'),
  path: z
    .string()
    .nullable()
    .describe('Path to which the catalogue pushes; null for a pull subscription.'),
  runningSeenAtUs: timeUs.describe('Last time it was seen running in the catalogue.'),
  pausedSeenAtUs: timeUs.describe(
    'First time it was seen paused since it last ran; null while it runs.',
  ),
  lastDeliveryAtUs: timeUs.describe('Time of the last notification.'),
  // Specification, Limits.
  pausesAtUs: timeUs.describe(
    'Time at which the catalogue pauses the subscription, unless a notification arrives first.',
  ),
  cancelsAtUs: timeUs.describe(
    'Time at which the catalogue deletes the subscription, unless a notification arrives first.',
  ),
  queue: queueSchema
    .nullable()
    .describe('Queue of a pull subscription; null for push, and before its first read.'),
  senders: sendersSchema,
  gaps: z
    .array(z.object({ fromUs: z.number(), toUs: timeUs, reason: z.string() }))
    .describe(
      'Time spans in which events were not pushed, the newest first. `to` is null while open.',
    ),
  evaluation: evaluationSchema,
});

export type EvaluatedSubscription = z.infer<typeof subscriptionSchema>;

/** The state of a subscription, and what its checks need to know. */
export interface SubscriptionState extends Omit<EvaluatedSubscription, 'evaluation'> {
  registration: Registration;
  /** True if maintenance resumes and recreates it automatically: an alert is then raised later. */
  maintenance: boolean;
  /** True if hours are compared with the catalogue automatically. */
  reconcile: boolean;
  /** Start of the hours whose events are known: those before its first definition or pruned are not. */
  knownSinceUs: number;
  /** Compared hours of the last 30 days since `knownSinceUs`, for all events. */
  coverage: readonly HourCoverage[];
  /**
   * Spans in which its pushes would have been received: the receiver was up, the subscription ran, and its definition
   * was the current one.
   */
  watched: readonly Span[];
}

/** Returns true when notifications of the subscription are expected now. */
export function isRunning({ registration, id }: SubscriptionState): boolean {
  const { status, pausedSeenAtUs, unfinished } = registration;
  return status === 'running' && id !== null && pausedSeenAtUs === null && !unfinished;
}

interface Sources extends Pick<SubscriptionState, 'maintenance' | 'reconcile'> {
  administration: AdministrationReader;
  completeness: CompletenessReader;
}

/** Reads the registered subscriptions, by name. Rejects with `unavailable`. */
export async function readSubscriptions(
  { administration, completeness, ...automatic }: Sources,
  nowUs: number,
): Promise<SubscriptionState[]> {
  const sinceUs = hourOf(nowUs - comparisonHorizonUs);
  const [coverage, uptimes, unprunedSinceUs, definitions, gaps, queues, marks, registrations] =
    await Promise.all([
      completeness.coverage({ sinceUs, untilUs: nowUs }),
      completeness.uptimes(sinceUs),
      completeness.unprunedSinceUs(),
      completeness.definitions(),
      administration.gaps(),
      administration.queues(),
      administration.deliveryMarks(),
      administration.registrations(),
    ]);
  return registrations.map((registration): SubscriptionState => {
    const { name, type, subscriptionId: id, status, pausedSeenAtUs } = registration;
    const ofThis = <One extends { subscription: string }>(all: readonly One[]) =>
      all.filter(({ subscription }) => subscription === name);
    const known = ofThis(definitions);
    const knownSinceUs = Math.max(unprunedSinceUs, hourOf(known[0]?.fromUs ?? nowUs));
    const definedUs = Math.max(unprunedSinceUs, known.at(-1)?.fromUs ?? nowUs, sinceUs);
    const watched = without(uptimes, [
      { fromUs: 0, toUs: definedUs },
      { fromUs: nowUs, toUs: Number.POSITIVE_INFINITY },
      ...ofThis(gaps).map(({ fromUs, toUs }) => ({ fromUs, toUs: toUs ?? nowUs })),
    ]);
    const lastDeliveryAtUs = lastDeliveryOf(name, marks, nowUs);
    const lifetime = lifetimeOf({ registration, listed: null, lastDeliveryAtUs, nowUs });
    const state = stateOf(registration);
    return {
      ...{ name, id, state, type, filter: registration.filter, events: [...registration.events] },
      ...{ pausedOnPurpose: status === 'paused', changedByPerson: registration.changedByPerson },
      path: type === 'pull' ? null : pathOf(name),
      ...{ runningSeenAtUs: registration.runningSeenAtUs, pausedSeenAtUs, lastDeliveryAtUs },
      pausesAtUs: state === 'running' ? lifetime.pausesAtUs : null,
      cancelsAtUs: state === 'absent' ? null : lifetime.cancelsAtUs,
      // While no receiver runs, the state of a queue that was deleted stays stored.
      queue: queues.find((one) => one.subscriptionId === id && one.subscription === name) ?? null,
      senders: sendersOf(marks, name),
      gaps: ofThis(gaps).toReversed(),
      ...{ registration, ...automatic, knownSinceUs, watched },
      coverage: ofThis(coverage).filter((hour) => hour.hourUs >= knownSinceUs),
    };
  });
}

/** Returns the path of the public listener to which the catalogue pushes. */
export function pathOf(name: string | null): string {
  return name === null ? '/notifications' : endpointOf('', name);
}

/** A queue is read without a user name. */
function sendersOf(marks: readonly DeliveryMark[], name: string | null) {
  return marks
    .filter(({ subscription, username }) => subscription === name && username !== '')
    .map(({ username, lastAtUs }) => ({ username, lastAtUs }))
    .toSorted((a, b) => b.lastAtUs - a.lastAtUs);
}

function stateOf(registration: Registration): EvaluatedSubscription['state'] {
  const { subscriptionId, unfinished, status, pausedSeenAtUs } = registration;
  if (unfinished) return 'unfinished';
  if (subscriptionId === null) return 'absent';
  return status === 'paused' || pausedSeenAtUs !== null ? 'paused' : 'running';
}
