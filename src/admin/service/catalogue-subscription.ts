/** A subscription as the catalogue shows it, read tolerantly. */
import { z } from 'zod';
import { AppError } from '../../domain/app-error.ts';
import { parseDate } from '../../domain/notification-date.ts';
import { sortedEvents } from '../../domain/subscription.ts';

// An array in every answer known; a client was seen to send one text with commas (facts 1.3).
const events = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
  .transform((words) => sortedEvents(words.map((word) => word.trim().toLowerCase())));

const date = z
  .string()
  .nullish()
  .catch(null)
  .transform((text) => (text ? (parseDate(text)?.us ?? null) : null));

/** A user name and password in a URL, of whomever, are shown to nobody. */
function withoutUserInfo(endpoint: string | null): string | null {
  return endpoint?.replace(/^(\w+:\/\/)[^/?#]*@/, '$1…@') ?? null;
}

/** Reads one subscription; only the id and a known kind of status must be there. */
export const catalogueSubscriptionSchema = z
  .looseObject({
    Id: z.string().min(1),
    Status: z.string().transform((word) => word.toLowerCase()),
    SubscriptionType: z.string().nullish().catch(null),
    SubscriptionEvent: events.catch([]),
    FilterParam: z.string().nullish().catch(null),
    NotificationEndpoint: z.string().nullish().catch(null),
    SubmissionDate: date,
    LastNotificationDate: date,
  })
  .transform((raw) => ({
    id: raw.Id,
    /** running, paused, cancelled, or a word that is new. */
    status: raw.Status,
    /** Null before the catalogue showed it (July 2025); push is what has an endpoint. */
    type: raw.SubscriptionType?.toLowerCase() ?? null,
    /** In the order of the specification. */
    events: raw.SubscriptionEvent,
    /** Empty for every product. */
    filter: raw.FilterParam ?? '',
    /** Null for pull subscriptions. */
    endpoint: withoutUserInfo(raw.NotificationEndpoint ?? null),
    submittedAtUs: raw.SubmissionDate,
    lastNotificationAtUs: raw.LastNotificationDate,
  }));

export type CatalogueSubscription = z.infer<typeof catalogueSubscriptionSchema>;

/** Reads an answer that holds one subscription; null when it does not. */
export function readSubscription(json: unknown): CatalogueSubscription | null {
  return catalogueSubscriptionSchema.safeParse(json).data ?? null;
}

/**
 * Reads the list of an account. Throws `unavailable` when it is none, and also when one item cannot
 * be read: it counts against the limits, and may be ours.
 */
export function readSubscriptionList(json: unknown): CatalogueSubscription[] {
  const items = z.array(z.unknown()).safeParse(json).data;
  if (items === undefined) {
    throw unreadable('it is not a JSON array.', 'Check EARSHOT_CATALOGUE_URL.');
  }
  return items.map((item, index) => {
    const { data, error } = catalogueSubscriptionSchema.safeParse(item);
    if (data !== undefined) return data;
    const fields = error.issues.map(({ path }) => path.join('.')).filter((name) => name !== '');
    const missing = fields.length === 0 ? 'is not an object' : `lacks ${fields.join(' and ')}`;
    throw unreadable(`item ${index} of ${items.length} (from 0) ${missing}.`);
  });
}

function unreadable(why: string, advice?: string): AppError {
  const message = `The catalogue's list of subscriptions cannot be read: ${why}`;
  return new AppError('unavailable', message, { advice });
}
