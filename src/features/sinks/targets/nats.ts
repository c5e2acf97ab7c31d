/** Delivers items to a NATS JetStream stream, with the client library of the NATS project. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { Socket } from 'node:net';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { causesOf, networkFault } from '../../../core/http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/service-error.ts';
import type { NotificationDocument } from '../../messages/document.ts';
import { formats } from '../../messages/formats.ts';
import {
  aborted,
  certificatesForm,
  createConnection,
  defineThreadKind,
  nameField,
  secretForm,
  type TargetFailure,
  unavailable,
  unusable,
  usable,
} from '../target.ts';

const serverForm =
  'must be nats:// or tls:// with a host and an optional port, such as nats://127.0.0.1:4222';
/** URL of a server: `nats://` or `tls://`, a host, and an optional port. */
const natsServer = z.string(serverForm).refine((server) => {
  const url = URL.parse(server);
  const isBare = /^(nats|tls):\/\/[^/?#@]+$/.test(server);
  return isBare && url !== null && url.hostname !== '';
}, serverForm);

const subjectForm =
  'must be tokens separated by dots, such as earshot.products; may contain {event} and {subscription}';
/** Subject to publish to (docs.nats.io, Subjects); `{…}` is replaced for each item. */
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
      /** Servers of the cluster; earshot connects to one of them. */
      servers: z
        .array(natsServer, "must be a list, such as ['nats://127.0.0.1:4222']")
        .min(1, 'must name a server')
        .refine(
          (servers) => new Set(servers.map((server) => server.split(':')[0])).size < 2,
          'must all be nats://, or all be tls://',
        ),
      /** A stream must listen to it. `{event}` and `{subscription}` are replaced for each item. */
      subject: natsSubject,
      user: nameField('earshot').optional(),
      /** File with the password of `user`; must not be readable by everyone. */
      passwordFile: nameField('nats-password').optional(),
      /** File with a token, instead of user and password. */
      tokenFile: nameField('nats-token').optional(),
      /** PEM file with the certificate authorities of the servers, for `tls://`. */
      ca: nameField('authority.pem').optional(),
    },
    natsForm,
  )
  .refine(
    ({ user, passwordFile }) => (user === undefined) === (passwordFile === undefined),
    'user and passwordFile must be set together',
  )
  .refine(
    ({ user, tokenFile }) => user === undefined || tokenFile === undefined,
    'user and tokenFile must not be set together',
  )
  .refine(
    ({ servers, ca }) => ca === undefined || servers.every((server) => server.startsWith('tls:')),
    'ca requires tls:// servers',
  );

/** Settings of a NATS sink: its fields, with the content of the files. */
export interface NatsSettings extends Pick<z.output<typeof natsSchema>, 'servers' | 'subject'> {
  login: { user: string; pass: string } | { token: string } | null;
  ca: string | null;
}

const connectTimeoutMs = 10_000;

/** After two unanswered pings, the connection counts as broken. */
const pingIntervalMs = 15_000;

/**
 * Publishes each document to the subject, with its id as message id: the stream drops duplicates within its duplicate
 * window. The stream acknowledges the message. Connects with the first item, and with the next one after a connection
 * loss.
 */
export const nats = defineThreadKind({
  load: loadLibrary,
  fields: {
    /** A stream of NATS JetStream. */
    nats: natsSchema.optional(),
  },
  concurrency: 32,
  settings: ({ nats }, readFile): NatsSettings => {
    if (nats === undefined) throw new Error('The schema requires a target.');
    const { servers, subject, user } = nats;
    const token = readFile('nats.tokenFile', nats.tokenFile, secretForm);
    const pass = readFile('nats.passwordFile', nats.passwordFile, secretForm);
    const login = user === undefined || pass === null ? null : { user, pass };
    const ca = readFile('nats.ca', nats.ca, certificatesForm);
    return { servers, subject, login: token === null ? login : { token }, ca };
  },
  open: (target, { name, timeoutMs, format }) => {
    const connection = createConnection((signal) => openNats(target, name, signal));
    return {
      deliver: async ({ document, text }, signal) => {
        const subject = subjectFor(target.subject, document);
        const library = await loadLibrary();
        const publish = async () => {
          const stream = library.jetstream(await connection.current());
          // Longer than the signal, whose reason says more than the library's error.
          const timeout = timeoutMs + connectTimeoutMs;
          const headers = library.headers();
          headers.set('content-type', formats[format].mediaType);
          await stream.publish(subject, text, { msgID: document.id, timeout, headers });
        };
        try {
          await Promise.race([publish(), aborted(signal)]);
          return { kind: 'acknowledged' };
        } catch (error) {
          return natsFault(library, error, target, subject);
        }
      },
      close: connection.close,
    };
  },
  check: async (target, { sink, signal }) => {
    const servers = target.servers.join(', ');
    try {
      const connection = await openNats(target, sink.name, signal);
      await connection.close();
    } catch (error) {
      return unusable(servers, natsFault(await loadLibrary(), error, target).reason);
    }
    const login = target.login === null ? 'connections without a login' : 'the login';
    const message = `${servers} accepts ${login}. The stream is not checked, because that requires a message: run \`earshot sinks test ${sink.name}\`.`;
    return usable(message, target.servers, { login: target.login, secure: 'tls' });
  },
});

/** Imports the client library with the first item, so that other commands start without it. */
async function loadLibrary() {
  const [jetstream, transport] = await Promise.all([
    import('@nats-io/jetstream'),
    import('@nats-io/transport-node'),
  ]);
  const { connect, errors, headers } = transport;
  return { ...jetstream, connect, errors, headers };
}
type Library = Awaited<ReturnType<typeof loadLibrary>>;

/** Diagnostics channel to which Node publishes each opened socket of the thread, as `{ socket }`. */
const socketOpened = 'net.client.socket';

/**
 * Connects to a server, and closes the sockets of a failed attempt: if a server accepts the connection but never
 * responds, the library times out and leaves its socket open (transport-node 3.4.0). Rejects with the signal's reason
 * when it is aborted, otherwise with the library's error.
 */
async function openNats(
  { servers, login, ca }: NatsSettings,
  name: string,
  signal: AbortSignal,
): Promise<NatsConnection> {
  const { connect } = await loadLibrary();
  const sockets: Socket[] = [];
  const destroyAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket?: unknown };
    if (socket instanceof Socket) sockets.push(socket);
    if (signal.aborted) destroyAll();
  };
  subscribe(socketOpened, onSocket);
  signal.addEventListener('abort', destroyAll);
  try {
    return await connect({
      servers: [...servers],
      // Shown by the tools of the server.
      name: `earshot ${name}`,
      reconnect: false,
      timeout: connectTimeoutMs,
      pingInterval: pingIntervalMs,
      noAsyncTraces: true,
      ...(servers[0]?.startsWith('tls:') && { tls: ca === null ? {} : { ca } }),
      ...login,
    });
  } catch (error) {
    destroyAll();
    // The library's error does not say why its socket was closed.
    signal.throwIfAborted();
    throw error;
  } finally {
    unsubscribe(socketOpened, onSocket);
    signal.removeEventListener('abort', destroyAll);
  }
}

/** `JSStreamMessageExceedsMaximumErr` of nats-server's errors.json. */
const messageTooLarge = 10_054;

/** Classifies an error. Removes the login from the server's text. `subject` is the published subject. */
function natsFault(
  { errors, JetStreamApiError }: Library,
  error: unknown,
  { login, subject: template }: NatsSettings,
  subject = template,
): TargetFailure {
  const causes = causesOf(error);
  const has = (...kinds: (abstract new (...args: never) => Error)[]) =>
    causes.some((cause) => kinds.some((kind) => cause instanceof kind));
  const misconfigured = has(errors.NoRespondersError)
    ? `no stream listens to the subject ${subject}: create one for ${coveringSubject(template)} (nats stream add)`
    : has(errors.AuthorizationError, errors.UserAuthenticationExpiredError)
      ? 'it rejected the credentials'
      : has(errors.PermissionViolationError) &&
        'the NATS user has no permission to publish to the subject, or to read the response';
  if (misconfigured) return { kind: 'misconfigured', reason: misconfigured };
  if (has(errors.InvalidArgumentError)) {
    const reason = 'the item exceeds the maximum size of the server (max_payload)';
    return { kind: 'refused', reason };
  }
  const answered = causes.find((cause) => cause instanceof JetStreamApiError);
  if (answered !== undefined) {
    const secrets = Object.values(login ?? {});
    const detail = foreignText(answered.message, { secrets, charactersMax: hintCharactersMax });
    const reason = `the stream answered ${answered.code}: ${detail}`;
    return answered.code === messageTooLarge ? { kind: 'refused', reason } : unavailable(reason);
  }
  if (has(errors.TimeoutError)) return unavailable('it did not answer in time');
  if (has(errors.RequestError)) return unavailable('the connection was lost');
  return unavailable(networkFault(error));
}

/** Fills the template. Values from outside must neither add a token nor be a wildcard. */
function subjectFor(
  template: string,
  { event, subscription }: Pick<NotificationDocument, 'event' | 'subscription'>,
): string {
  const token = (text: string) => text.replaceAll(/[^a-z0-9-]/gi, '_') || '_';
  return template
    .replaceAll('{event}', () => token(event))
    .replaceAll('{subscription}', () => token(subscription ?? '_'));
}

/** Returns the subject with wildcards for all subjects of the sink, such as `earshot.*.*`. */
function coveringSubject(template: string): string {
  // A wildcard stands for a whole token (docs.nats.io, Subjects).
  return template
    .split('.')
    .map((token) => (token.includes('{') ? '*' : token))
    .join('.');
}
