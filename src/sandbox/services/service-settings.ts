/** The knobs of the account's services: what the specification leaves open, and the services' own faults. */
import { z } from 'zod';
import { createKnobs, type Knobs, numberForEach } from '../knobs.ts';

const count = z.int().min(0).max(1_000_000);
const errorStatus = z.int().min(400).max(599);
const seconds = z.int().min(1).max(86_400);
const delayMs = z.int().min(0).max(3_600_000).default(0);
const on = z.boolean().default(true);
const off = z.boolean().default(false);

/** In the order in which they are played: at most one for a list. The first three replace the answer. */
export const queryFaults = [
  'rateLimited', // Answered 429, with Retry-After.
  'serverError', // Answered 500.
  'htmlPage', // An HTML page with status 200, as of a proxy.
  'connectionCut', // The connection is cut in the middle of the page.
  'brokenJson', // JSON that ends half-way, with status 200.
  'valueMissing', // JSON without `value`.
  'outOfOrder', // The records of the page in the opposite order.
] as const;
export type QueryFault = (typeof queryFaults)[number];

/** Every knob with its default. Unknown names are an error. */
export const serviceSettingsSchema = z.strictObject({
  /** Subscriptions of the account that may run, and those that it may have, pull included. */
  runningMax: count.default(2),
  totalMax: count.default(10),
  /** Answer to what exceeds a limit. */
  limitStatus: errorStatus.default(400),
  /** Resuming beyond the limit: an error, or 200 with the subscription still paused. */
  resumeBeyondLimit: z.enum(['refuse', 'ignore']).default('refuse'),
  /** Refuses every filter with this text: a catalogue may know less than its documentation. */
  filterRefusal: z.string().nullable().default(null),
  /** Answer to an unknown subscription id. */
  unknownIdStatus: errorStatus.default(404),
  /** Answer to a missing, unknown or expired access token. */
  unauthorizedStatus: errorStatus.default(401),
  /** Form of `detail` in errors of the catalogue, except those with a form of their own. */
  detailForm: z.enum(['string', 'object', 'list']).default('object'),
  /** Whether one subscription can be read by its id. */
  getById: on,
  /** Whether LastNotificationDate is returned, once there is one. */
  lastNotificationDateShown: on,
  /** SubscriptionEvent as an array, or as one text with commas. */
  eventsAs: z.enum(['array', 'string']).default('array'),
  /** SubmissionDate as …267Z, or as …2670 without a zone, as seen in an old example. */
  submissionDateForm: z.enum(['millisecond', 'withoutZone']).default('millisecond'),
  /** Whether StageOrder is returned as it was sent; otherwise it is always false. */
  stageOrderReturned: off,
  /** Lifetime of an access token; of a refresh token and its session, counted from the login. */
  accessTokenSeconds: seconds.default(600),
  refreshTokenSeconds: seconds.default(3_600),
  /** Sessions of the account; each login is one. */
  sessionsMax: count.default(100),
  /** Shared secret of the one-time codes; null: a login needs no code. */
  totpSecret: z
    .string()
    .regex(/^[a-z2-7]{8,}=*$/i, 'expected a base32 secret')
    .nullable()
    .default(null),
  /** Whether the account was activated. */
  accountActive: on,
  /** Every call of the catalogue, or of the identity provider, is answered 503. */
  unavailable: off,
  identityUnavailable: off,
  /** Number of creations that are done, but the connection is cut before the answer. */
  createAnswersLost: count.default(0),
  /** Number of creations that are answered 503 and create nothing. */
  createsRefused503: count.default(0),
  /** Delay of every answer after the work is done, and the additional one of answers about products. */
  answerDelayMs: delayMs,
  /** Whether products are shown only to clients with an access token. */
  queriesNeedToken: off,
  queryDelayMs: delayMs,
  /** Retry-After of `rateLimited`; null: none. */
  queryRetryAfterSeconds: z.int().min(0).max(86_400).nullable().default(5),
  /** Shares of the product lists, 0 to 1, that a fault is played for. */
  queryFaults: numberForEach(queryFaults, z.number().min(0).max(1)),
  /** Numbers of the next product lists that a fault is played for; they count down. */
  nextQueries: numberForEach(queryFaults, count),
});

export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;

export type ServiceKnobs = Knobs<typeof serviceSettingsSchema>;

export function createServiceKnobs(initial: ServiceSettings): ServiceKnobs {
  return createKnobs(serviceSettingsSchema, initial, 'The services were');
}
