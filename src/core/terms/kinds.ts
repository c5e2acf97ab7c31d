/** Closed lists of values in read models. */

/**
 * Origins of a notification. `push`: sent by the catalogue. `pull`: read from the queue of a pull subscription.
 * `reconcile`: found missing, or without a record, and fetched by earshot.
 */
export const notificationSources = ['push', 'pull', 'reconcile'] as const;
export type NotificationSource = (typeof notificationSources)[number];

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
