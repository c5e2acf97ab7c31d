/** When a notification that was not delivered is tried again. */
import { z } from 'zod';

/** How many times a notification is tried: once, and three times again. */
export const attemptsMax = 4;

/**
 * The waits before the second, third and fourth attempt, in ms. That there are three retries is
 * documented; which answers cause one is not, so anything but a 2xx does.
 */
export const retryDelaysMsSchema = z.tuple([
  z.number().min(0).max(3_600_000),
  z.number().min(0).max(3_600_000),
  z.number().min(0).max(3_600_000),
]);

export type RetryDelaysMs = Readonly<z.output<typeof retryDelaysMsSchema>>;

/** Our choice: the intervals of the real service are not known. */
export const defaultRetryDelaysMs: RetryDelaysMs = [1_000, 5_000, 25_000];
