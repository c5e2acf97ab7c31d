/** How `earshot.config.ts` may say where notifications are handed over to. */
import { z } from 'zod';
import { subscriptionEvents, subscriptionNamePattern } from '../domain/subscription.ts';
import { exactUrl, filterSchema } from './values.ts';

/** A file's name, or a user's. */
const named = (example: string) => {
  const form = `must be a text that is not empty, such as '${example}'`;
  return z.string(form).min(1, form);
};
const wholeNumber = (most: number) => {
  const form = `must be a whole number from 1 to ${most}`;
  return z.int(form).min(1, form).max(most, form);
};

const serverForm =
  'must be nats:// or tls:// and a name, perhaps with a port, such as nats://127.0.0.1:4222';
/** `nats://` or `tls://`, a name and perhaps a port. */
const natsServer = z.string(serverForm).refine((server) => {
  const url = URL.parse(server);
  const isBare = /^(nats|tls):\/\/[^/?#@]+$/.test(server);
  return isBare && url !== null && url.hostname !== '';
}, serverForm);

const subjectForm =
  'must be words with dots between them, such as earshot.products; {event} and {subscription} may stand in it';
/** A subject to publish to (docs.nats.io, Subjects); `{…}` are replaced for each item. */
const natsSubject = z
  .string(subjectForm)
  .regex(
    /^(?=.{1,200}$)([\w$-]|\{event\}|\{subscription\})+(\.([\w$-]|\{event\}|\{subscription\})+)*$/,
    subjectForm,
  );

const natsForm =
  "must be an object, such as { servers: ['nats://127.0.0.1:4222'], subject: 'earshot.products' }";

const natsSchema = z
  .strictObject(
    {
      /** Any of them is connected to. */
      servers: z
        .array(natsServer, "must be a list, such as ['nats://127.0.0.1:4222']")
        .min(1, 'name a server')
        .refine(
          (servers) => new Set(servers.map((server) => server.split(':')[0])).size < 2,
          'must be all nats:// or all tls://',
        ),
      /** A stream that listens to it must exist. `{event}` and `{subscription}` are put in for each item. */
      subject: natsSubject,
      user: named('earshot').optional(),
      /** A file that holds the password of `user`; not everybody may read it. */
      passwordFile: named('nats-password').optional(),
      /** A file that holds a token, in place of user and password. */
      tokenFile: named('nats-token').optional(),
      /** A PEM file with the authorities that the servers' certificates are of, for `tls://`. */
      ca: named('authority.pem').optional(),
    },
    natsForm,
  )
  .refine(
    ({ user, passwordFile }) => (user === undefined) === (passwordFile === undefined),
    'user and passwordFile belong together: set both',
  )
  .refine(
    ({ user, tokenFile }) => user === undefined || tokenFile === undefined,
    'user and tokenFile exclude each other: keep one of them',
  )
  .refine(
    ({ servers, ca }) => ca === undefined || servers.every((server) => server.startsWith('tls:')),
    'ca goes with tls:// servers',
  );

const commandForm = "must be a list, such as ['node', 'act.js']";
const subscriptionForm = "must be the name of a subscription, such as 'alps'";

/** A sink: where to, and what. */
export const sinkSchema = z
  .strictObject(
    {
      /** A program and its arguments, started for each item, which it gets as JSON on its standard input. */
      command: z
        .array(z.string("must be a text, such as 'act.js'"), commandForm)
        .refine(([program = '']) => program !== '', 'name a program')
        .optional(),
      /** An https URL that each item is posted to; http only to this machine. */
      webhook: exactUrl.optional(),
      /** A stream of NATS JetStream. */
      nats: natsSchema.optional(),
      /** A file that holds the secret that webhooks are signed with (`whsec_…`); not everybody may read it. */
      secretFile: named('hook-secret').optional(),
      /** A PEM file with the authority that the webhook's certificate is of, besides the public ones. */
      ca: named('authority.pem').optional(),
      /** Only what came for these; all of them unless told. */
      subscriptions: z
        .array(
          z.string(subscriptionForm).regex(subscriptionNamePattern, subscriptionForm),
          "must be a list, such as ['alps']",
        )
        .min(1, 'name a subscription, or leave this out')
        .optional(),
      /** Only these; all of them unless told. */
      events: z
        .array(z.enum(subscriptionEvents), "must be a list, such as ['created', 'deleted']")
        .min(1, 'name an event, or leave this out')
        .optional(),
      /** Only products that match; empty, or left out, for every product. */
      filter: filterSchema.default(''),
      /** Where a new sink begins: with what comes from `now` on, unless told, or at the `start` of the log. */
      from: z.enum(['now', 'start']).default('now'),
      /** How many may be on their way at a time; unless told 2 for a command, 8 for a webhook, 32 for NATS. */
      concurrency: wholeNumber(64).optional(),
      /** For one attempt; 30 unless told. */
      timeoutSeconds: wholeNumber(3_600).default(30),
      /** Refusals of one item until it is a dead letter; 5 unless told. */
      attempts: wholeNumber(100).default(5),
    },
    "must be an object, such as { command: ['node', 'act.js'] }",
  )
  .refine(
    ({ command, webhook, nats }) =>
      [command, webhook, nats].filter((target) => target !== undefined).length === 1,
    'name one target: command, webhook or nats',
  )
  .refine(
    ({ webhook, secretFile }) => webhook !== undefined || secretFile === undefined,
    'secretFile goes with a webhook',
  )
  .refine(
    ({ webhook, ca }) => webhook?.startsWith('https:') === true || ca === undefined,
    'ca goes with an https webhook; for NATS it stands within nats',
  );

/** A sink as the file has it, its form checked. */
export type SinkInput = z.output<typeof sinkSchema>;

/** The fields that are known at a place in a sink. */
export function sinkFields(place: readonly PropertyKey[]): readonly string[] {
  if (place.length === 0) return Object.keys(sinkSchema.shape);
  return place[0] === 'nats' ? Object.keys(natsSchema.shape) : [];
}
