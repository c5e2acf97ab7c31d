/** The knobs of the account's services: what the specification leaves open, and the services' own faults. */
import { z } from 'zod';
import { SandboxConfigurationError } from '../configuration-error.ts';
import { type QueryFault, queryFaults } from './query-fault-names.ts';

const count = () => z.int().min(0).max(1_000_000);
const errorStatus = () => z.int().min(400).max(599);
const seconds = () => z.int().min(1).max(86_400);
const base32 = /^[a-z2-7]{8,}=*$/i;

/** A number for each fault of the product lists; those left out are 0. */
function forEachQueryFault(value: z.ZodType<number>) {
  const none = Object.fromEntries(queryFaults.map((fault) => [fault, 0]));
  return z
    .partialRecord(z.enum(queryFaults), value)
    .transform((some) => ({ ...none, ...some }) as Readonly<Record<QueryFault, number>>)
    .prefault({});
}

/** Every knob with its default. Unknown names are an error. */
export const serviceSettingsSchema = z.strictObject({
  runningMax: count().default(2).describe('Subscriptions of the account that may run.'),
  totalMax: count().default(10).describe('Subscriptions that the account may have, pull included.'),
  limitStatus: errorStatus().default(400).describe('Answer to what goes beyond a limit.'),
  resumeBeyondLimit: z
    .enum(['refuse', 'ignore'])
    .default('refuse')
    .describe('Resuming beyond the limit: an error, or 200 with the subscription still paused.'),
  filterRefusal: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'Refuses every filter, saying this: a catalogue may know less than its documentation.',
    ),
  unknownIdStatus: errorStatus().default(404).describe('Answer to an unknown subscription id.'),
  unauthorizedStatus: errorStatus()
    .default(401)
    .describe('Answer to a missing, unknown or expired access token.'),
  detailForm: z
    .enum(['string', 'object', 'list'])
    .default('object')
    .describe(
      'Form of `detail` in errors of the catalogue, except those with a form of their own.',
    ),
  getById: z.boolean().default(true).describe('Whether one subscription can be read by its id.'),
  lastNotificationDateShown: z
    .boolean()
    .default(true)
    .describe('Whether LastNotificationDate is returned, once there is one.'),
  eventsAs: z
    .enum(['array', 'string'])
    .default('array')
    .describe('SubscriptionEvent as an array, or as one text with commas.'),
  submissionDateForm: z
    .enum(['millisecond', 'withoutZone'])
    .default('millisecond')
    .describe('SubmissionDate as …267Z, or as …2670 without a zone, as seen in an old example.'),
  stageOrderReturned: z
    .boolean()
    .default(false)
    .describe('Whether StageOrder is returned as it was sent; otherwise it is always false.'),
  accessTokenSeconds: seconds().default(600).describe('Lifetime of an access token.'),
  refreshTokenSeconds: seconds()
    .default(3_600)
    .describe('Lifetime of a refresh token and its session, counted from the login.'),
  sessionsMax: count().default(100).describe('Sessions of the account; each login is one.'),
  totpSecret: z
    .string()
    .regex(base32, 'expected a base32 secret')
    .nullable()
    .default(null)
    .describe('Shared secret of the one-time codes; null: a login needs no code.'),
  accountActive: z.boolean().default(true).describe('Whether the account was activated.'),
  unavailable: z.boolean().default(false).describe('Every catalogue call is answered 503.'),
  identityUnavailable: z
    .boolean()
    .default(false)
    .describe('Every call of the identity provider is answered 503.'),
  createAnswersLost: count()
    .default(0)
    .describe('So many creations are done, but the connection is cut before the answer.'),
  createsRefused503: count()
    .default(0)
    .describe('So many creations are answered 503 and create nothing.'),
  answerDelayMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(0)
    .describe('How long every answer is kept back after the work is done.'),
  queriesNeedToken: z
    .boolean()
    .default(false)
    .describe('Whether products are only told to whoever has an access token.'),
  queryDelayMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(0)
    .describe('How long answers about products are kept back, besides `answerDelayMs`.'),
  queryRetryAfterSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .nullable()
    .default(5)
    .describe('Retry-After of `rateLimited`; null: none.'),
  queryFaults: forEachQueryFault(z.number().min(0).max(1)).describe(
    'Shares of the product lists, 0 to 1, that a fault is played for; those named first go first.',
  ),
  nextQueries: forEachQueryFault(count()).describe(
    'So many of the next product lists that a fault is played for; counts down.',
  ),
});

/** All knobs. */
export type ServiceSettings = Readonly<z.output<typeof serviceSettingsSchema>>;

/** Any selection of knobs, and of the faults within `queryFaults` and `nextQueries`. */
export type ServiceSettingsInput = z.input<typeof serviceSettingsSchema>;

/** The knobs in force, which may change while the sandbox runs. */
export interface ServiceKnobs {
  current(): ServiceSettings;
  /**
   * Sets the knobs, and the faults within them, that are named and keeps the others; returns all. Throws SandboxConfigurationError
   * for an unknown name or a value that does not fit.
   */
  change(changes: ServiceSettingsInput): ServiceSettings;
}

/** Creates knobs that start as given. */
export function createServiceKnobs(initial: ServiceSettings): ServiceKnobs {
  let settings = initial;
  return {
    current: () => settings,
    change: (changes) => {
      const result = changedSettingsSchema(settings).safeParse(changes);
      if (!result.success) {
        throw new SandboxConfigurationError(
          `The services were not changed. ${z.prettifyError(result.error)}`,
        );
      }
      settings = Object.freeze(result.data);
      return settings;
    },
  };
}

/** Reads a selection of knobs into all of them; what is not named stays as it is in `current`. */
export function changedSettingsSchema(current: ServiceSettings) {
  return z
    .record(z.string(), z.unknown())
    .transform((changes): unknown => ({
      ...current,
      ...changes,
      queryFaults: withChanges(current.queryFaults, changes.queryFaults),
      nextQueries: withChanges(current.nextQueries, changes.nextQueries),
    }))
    .pipe(serviceSettingsSchema);
}

/** What is no object is left for the schema to refuse. */
function withChanges(current: object, changes: unknown): unknown {
  if (changes === undefined) return current;
  const isObject = typeof changes === 'object' && changes !== null && !Array.isArray(changes);
  return isObject ? { ...current, ...changes } : changes;
}

/** The same without the secret: only whether it is set. */
export function shownSettings({ totpSecret, ...settings }: ServiceSettings) {
  return { ...settings, totpSecretSet: totpSecret !== null };
}
