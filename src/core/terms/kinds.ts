/** Closed lists of values in read models. */

/**
 * Origins of a notification. `push`: sent by the catalogue. `pull`: read from the queue of a pull subscription.
 * `reconcile`: found missing, or without a record, and fetched by earshot.
 */
export const notificationSources = ['push', 'pull', 'reconcile'] as const;
export type NotificationSource = (typeof notificationSources)[number];

/** Kinds of alerts. */
export const alertKinds = [
  'silence', // a subscription that usually delivers pushes delivers none
  'lost-pushes', // many events were not pushed and had to be fetched
  'missing', // expected events are not in the log, or hours could not be compared for a long time
  'lifetime', // the catalogue will pause or delete a subscription
  'not-running', // a subscription that should run does not run
  'queue', // a queue has many or old unread entries, or cannot be read
  'queue-reader', // another program reads a queue
  'certificate', // close to expiry and not renewed
  'disk', // little free space
  'intake', // notifications cannot be stored
  'receiver', // another receiver of the shared log does not run, refuses notifications, or lags
  'database', // the database of the shared log warns
  'backup', // the last backup is too old
  'sink', // a sink accepts nothing, or nothing is delivered to it
  'sink-refused', // a sink has dead letters
] as const;
export type AlertKind = (typeof alertKinds)[number];

export const alertLevels = ['warning', 'critical'] as const;

/** Notification channels. */
export const alertChannels = ['url', 'command'] as const;
export type AlertChannel = (typeof alertChannels)[number];

/** Kinds of summaries. */
export const summaryKinds = ['product', 'digest'] as const;

export type SummaryKind = (typeof summaryKinds)[number];

/** `waiting`: for its turn, the end of its period, the budget or the service. */
export const summaryStates = ['waiting', 'done'] as const;

export type SummaryState = (typeof summaryStates)[number];
