/** The sinks of `earshot.config.ts`: form of each kind of target, its defaults, and the files that it names. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { errorCodeOf } from '../domain/app-error.ts';
import type { SinkKind, SinkTarget, SinkTargetOf } from '../domain/sinks.ts';
import { subscriptionEvents, subscriptionNamePattern } from '../domain/subscription.ts';
import { holdsCertificates } from './tls.ts';
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

/** A field for each kind of target. */
const targetFields = {
  /** A program and its arguments, started for each item, which it gets as JSON on its standard input. */
  command: z
    .array(z.string("must be a text, such as 'act.js'"), commandForm)
    .refine(([program = '']) => program !== '', 'name a program')
    .optional(),
  /** An https URL that each item is posted to; http only to this machine. */
  webhook: exactUrl.optional(),
  /** A stream of NATS JetStream. */
  nats: natsSchema.optional(),
} satisfies Record<SinkKind, z.ZodType>;

const sinkKinds = Object.keys(targetFields) as SinkKind[];

const subscriptionForm = "must be the name of a subscription, such as 'alps'";

/** A sink: where to, and what. */
export const sinkSchema = z
  .strictObject(
    {
      ...targetFields,
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
    (sink) => sinkKinds.filter((kind) => sink[kind] !== undefined).length === 1,
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

interface KindSettings<Kind extends SinkKind> {
  /** Default number of deliveries at a time. */
  concurrency: number;
  /** `named` is the value of the kind's own field. */
  target(
    named: NonNullable<SinkInput[Kind]>,
    sink: SinkInput,
    readFile: ReadFile,
  ): SinkTargetOf<Kind>;
}

interface AnyKind extends Pick<KindSettings<SinkKind>, 'concurrency'> {
  target(named: never, sink: SinkInput, readFile: ReadFile): SinkTarget;
}

/** Kinds of sinks. A kind without an entry here or in `sinks/registry.ts` is an error of the compiler. */
const kinds: { [Kind in SinkKind]: KindSettings<Kind> } = {
  command: { concurrency: 2, target: (command) => ({ kind: 'command', command }) },
  webhook: {
    concurrency: 8,
    target: (url, { secretFile, ca }, readFile) => ({
      kind: 'webhook',
      url,
      secret: readFile('secretFile', secretFile, webhookSecretForm),
      ca: readFile('ca', ca, certificatesForm),
    }),
  },
  nats: {
    concurrency: 32,
    target: (nats, _sink, readFile) => {
      const { servers, subject, user } = nats;
      const token = readFile('nats.tokenFile', nats.tokenFile, secretForm);
      const password = readFile('nats.passwordFile', nats.passwordFile, secretForm);
      const ca = readFile('nats.ca', nats.ca, certificatesForm);
      const target = { kind: 'nats', servers, subject, ca } as const;
      if (token !== null) return { ...target, credentials: { kind: 'token', token } };
      if (user === undefined || password === null) {
        return { ...target, credentials: { kind: 'none' } };
      }
      return { ...target, credentials: { kind: 'user', user, password } };
    },
  },
};

/**
 * The target of a sink, and the number of deliveries at a time. Files are seen from the folder; what is wrong with
 * them is added to `problems`, without their content.
 */
export function readTarget(
  sink: SinkInput,
  { where, folder, problems }: { where: string; folder: string; problems: string[] },
) {
  const kind = sinkKinds.find((one) => sink[one] !== undefined);
  if (kind === undefined) throw new Error('The schema requires a target.');
  const { target, concurrency }: AnyKind = kinds[kind];
  const readFile: ReadFile = (field, file, { isSecret, faultOf }) => {
    if (file === undefined) return null;
    const path = resolve(folder, file);
    const fault = accessFault(path, isSecret);
    const text = fault === null ? readFileSync(path, 'utf8') : '';
    const content = isSecret ? text.replace(/\r?\n$/, '') : text;
    const problem = fault ?? faultOf(content);
    if (problem !== null) problems.push(`${where}.${field}: ${problem}`);
    return problem === null ? content : null;
  };
  return {
    target: target(sink[kind] as never, sink, readFile),
    concurrency: sink.concurrency ?? concurrency,
  };
}

/** Returns null when no file is named, or it cannot be used. */
type ReadFile = (field: string, file: string | undefined, form: FileForm) => string | null;

interface FileForm {
  /** A secret is read without the line feed at its end; not everybody may read its file. */
  isSecret: boolean;
  faultOf: (content: string) => string | null;
}

const secretForm: FileForm = {
  isSecret: true,
  faultOf: (secret) => (secret === '' ? 'the file is empty.' : null),
};

/** The scheme's own bounds for a secret (Standard Webhooks 1.0, "Signature scheme"). */
const secretBytes = { min: 24, max: 64 };

const webhookSecretForm: FileForm = {
  isSecret: true,
  faultOf: (secret) => {
    if (secret === '') return 'the file is empty.';
    const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
    const { byteLength } = Buffer.from(base64, 'base64');
    const { min, max } = secretBytes;
    if (base64.length % 4 === 0 && byteLength >= min && byteLength <= max) return null;
    return `the file must hold whsec_ and ${min} to ${max} random bytes in base64. Make one: echo "whsec_$(openssl rand -base64 32)"`;
  },
};

const certificatesForm: FileForm = {
  isSecret: false,
  faultOf: (pem) => (holdsCertificates(pem) ? null : 'the file does not hold PEM certificates.'),
};

function accessFault(path: string, isSecret: boolean): string | null {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return `${path} is a folder, not a file.`;
    // A group may read it: systemd delivers files that way which only root can read.
    if (isSecret && (stats.mode & 0o007) !== 0) {
      return `every user of this machine may read ${path}. Run: chmod o= ${path}`;
    }
    accessSync(path, constants.R_OK);
    return null;
  } catch (error) {
    return `${path} cannot be read (${errorCodeOf(error)}).`;
  }
}
