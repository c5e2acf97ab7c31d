/** What the service answers about a subscription; credentials are never part of it. */

import { type Subscription, toIso, typeOf } from '../account/subscription.ts';
import type { ServiceSettings } from './service-settings.ts';

/** Writes a subscription as the documented examples have it; the settings say what is left open. */
export function toJson(subscription: Subscription, settings: ServiceSettings): object {
  const { id, filter, stageOrder, status, address, events, lastNotificationMs } = subscription;
  const { eventsAs, stageOrderReturned, lastNotificationDateShown } = settings;
  return {
    Id: id,
    SubscriptionType: typeOf(subscription),
    FilterParam: filter,
    StageOrder: stageOrderReturned && stageOrder,
    Priority: 1,
    Status: status,
    ...(address === null ? {} : { NotificationEndpoint: address.endpoint }),
    ...(lastNotificationMs === null || !lastNotificationDateShown
      ? {}
      : { LastNotificationDate: toIso(lastNotificationMs) }),
    SubscriptionEvent: eventsAs === 'array' ? events : events.join(', '),
    SubmissionDate: submissionDateOf(subscription, settings),
    '@odata.context': '$metadata#OData.CSC.Subscription',
  };
}

function submissionDateOf({ submittedMs }: Subscription, { submissionDateForm }: ServiceSettings) {
  const date = toIso(submittedMs);
  // An example of 2024 has four digits and no zone; it is UTC all the same.
  return submissionDateForm === 'withoutZone' ? date.replace('Z', '0') : date;
}
