/** Delivers items to a web service, signed by the Standard Webhooks scheme (standardwebhooks.com, 1.0). */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import {
  networkFault,
  reachHost,
  readBeginning,
  retryAfterMs,
  UnusableAnswer,
} from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import { exactUrl } from '../http/network-address.ts';
import { contextTrusting } from '../http/tls-settings.ts';
import {
  certificatesForm,
  defineSinkKind,
  type FileForm,
  nameField,
  type TargetAnswer,
  unavailable,
} from './target.ts';

/** Statuses of a service that may take the same request later; all from 500 on are so, too. */
const passing = new Set([408, 425, 429]);

/** Statuses that speak of the address or the signature, and hardly of the one that was posted; so do all 3xx. */
const misconfigured = new Set([401, 403, 404, 405, 410]);

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

/**
 * Sends `{ type, timestamp, data }`: `product.created` and the like, the time of receipt, the document. The
 * scheme's headers come with it; `webhook-signature` only where there is a secret. Any 2xx has taken it, whatever
 * comes after the status. Redirects are not followed: what is posted must not travel to where another points.
 */
export const webhook = defineSinkKind({
  fields: {
    /** An https URL that each item is posted to; http only to this machine. */
    webhook: exactUrl.optional(),
    /** A file that holds the secret that webhooks are signed with (`whsec_…`); not everybody may read it. */
    secretFile: nameField('hook-secret').optional(),
    /** A PEM file with the authority that the webhook's certificate is of, besides the public ones. */
    ca: nameField('authority.pem').optional(),
  },
  faults: ({ webhook, secretFile, ca }) => {
    const faults: string[] = [];
    if (secretFile !== undefined && webhook === undefined) {
      faults.push('secretFile goes with a webhook');
    }
    if (ca !== undefined && webhook?.startsWith('https:') !== true) {
      faults.push('ca goes with an https webhook; for NATS it stands within nats');
    }
    return faults;
  },
  concurrency: 8,
  settings: ({ webhook: url = '', secretFile, ca }, readFile) => ({
    url,
    secret: readFile('secretFile', secretFile, webhookSecretForm),
    ca: readFile('ca', ca, certificatesForm),
  }),
  open: ({ url, secret, ca }, context) => {
    const trusting = ca === null ? null : createTrustingFetch(ca);
    const send = trusting?.fetch ?? context.fetch;
    const drain = createDrain();
    return {
      deliver: async (item, signal) => {
        const { id, event, receivedAt } = item;
        const document = { type: `product.${event}`, timestamp: receivedAt, data: item };
        const body = JSON.stringify(document);
        // Of each attempt: receivers refuse what is older than some minutes.
        const timestamp = String(Math.floor(context.nowUs() / 1_000_000));
        const headers = {
          'content-type': 'application/json',
          'user-agent': 'earshot',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          ...(secret !== null && {
            'webhook-signature': webhookSignature(secret, { id, timestamp, body }),
          }),
        };
        try {
          const posted = { method: 'POST', headers, body, signal, redirect: 'manual' } as const;
          const response = await send(url, posted);
          if (!response.ok) return await failureOf(response, secret);
          drain.take(response.body);
          return { kind: 'taken' };
        } catch (error) {
          return unavailable(networkFault(error));
        }
      },
      close: async () => {
        drain.close();
        trusting?.close();
      },
    };
  },
  check: async ({ url, ca, secret }, { signal }) => {
    const { host } = new URL(url);
    const fault = await reachHost(url, { ca, signal });
    if (fault !== null) {
      return {
        state: 'fail',
        message: `${host} cannot be reached: ${fault}.`,
        advice:
          'Start it, or correct its address (or its `ca`) in earshot.config.ts. What comes meanwhile waits.',
      };
    }
    const signed = secret === null ? ' Nothing is signed, as there is no secretFile.' : '';
    return { state: 'pass', message: `${host} can be reached; nothing was posted.${signed}` };
  },
});

/** Value of `webhook-signature` for one request. The secret is `whsec_` and the key in base64; `timestamp` in seconds. */
export function webhookSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

async function failureOf(
  { status, headers, body }: Response,
  secret: string | null,
): Promise<TargetAnswer> {
  const secrets = secret === null ? [] : [secret];
  const beginning = Buffer.concat(await readBeginning(body));
  const hint = hintOf(new TextDecoder().decode(beginning));
  const words = foreignText(hint, { secrets, charactersMax: hintCharactersMax });
  const reason = `it answered ${status}${words === '' ? '' : `: ${words}`}`;
  if (status < 400) {
    const advice = 'which is no answer of a webhook: name the address that takes requests itself';
    return { kind: 'misconfigured', reason: `it answered ${status}, ${advice}` };
  }
  if (misconfigured.has(status)) return { kind: 'misconfigured', reason };
  if (status >= 500 || passing.has(status)) {
    return { kind: 'unavailable', reason, retryAfterMs: retryAfterMs(headers) };
  }
  return { kind: 'refused', reason };
}

/** Of a body that nobody waits for; to keep its connection is worth no more. */
const bytesMax = 65_536;

/** Such bodies at a time; the oldest is left when there are more. */
const drainedMax = 64;

/**
 * Lets short bodies come to their end, so that their connections serve again. Nobody waits for them; `close` leaves
 * those that have not ended.
 */
function createDrain() {
  const open = new Set<ReadableStreamDefaultReader<Uint8Array>>();
  // Its read ends, and with it the connection.
  const leave = (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    open.delete(reader);
    reader.cancel().catch(() => undefined);
  };
  const drain = async (reader: ReadableStreamDefaultReader<Uint8Array>) => {
    for (let bytes = 0; bytes < bytesMax; ) {
      const { done, value } = await reader.read();
      if (done) return;
      bytes += value.byteLength;
    }
  };
  return {
    take: (body: ReadableStream<Uint8Array> | null) => {
      if (body === null) return;
      const reader = body.getReader();
      open.add(reader);
      drain(reader).then(
        () => leave(reader),
        () => leave(reader),
      );
      const [oldest] = open;
      if (open.size > drainedMax && oldest !== undefined) leave(oldest);
    },
    close: () => {
      for (const reader of open) leave(reader);
    },
  };
}

/**
 * A `fetch` of https URLs that trusts the authorities in `pem` in addition to the public ones and the system's. It
 * follows no redirects. `close` ends connections that are kept open.
 */
function createTrustingFetch(pem: string) {
  const agent = new Agent({
    keepAlive: true,
    secureContext: contextTrusting([pem]),
    // Stated, because an environment variable could otherwise switch the checks off.
    rejectUnauthorized: true,
  });
  const send: typeof fetch = async (input, init) => {
    const asked = new Request(input, init);
    // That of the request merely follows it, and may be forgotten before it is told.
    const signal = init?.signal ?? asked.signal;
    const body = Buffer.from(await asked.arrayBuffer());
    return new Promise((resolve, reject) => {
      const { method } = asked;
      const headers = { ...Object.fromEntries(asked.headers), 'content-length': body.byteLength };
      // Ends the answer's body, too.
      const sent = request(asked.url, { method, headers, signal, agent });
      // Node's own error for an abort does not tell a timeout: the signal does.
      const fail = (error: unknown) => reject(signal.aborted ? signal.reason : error);
      sent.on('response', (incoming) => {
        // Whatever is thrown in a listener would end the program.
        try {
          resolve(responseOf(incoming));
        } catch (error) {
          incoming.destroy();
          fail(error);
        }
      });
      sent.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy();
        fail(new UnusableAnswer(`it answered ${statusCode}: it wants to speak another protocol`));
      });
      sent.on('error', fail);
      sent.on('close', () =>
        fail(new UnusableAnswer('it closed the connection without an answer')),
      );
      sent.end(body);
    });
  };
  return { fetch: send, close: () => agent.destroy() };
}

/** Throws UnusableAnswer for a status that is none. */
function responseOf(incoming: IncomingMessage): Response {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? '', incoming.rawHeaders[i + 1] ?? '');
  }
  const status = incoming.statusCode ?? 0;
  if (status < 200 || status > 599) {
    throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
  }
  const isEmpty = [204, 205, 304].includes(status);
  if (isEmpty) incoming.resume();
  const body = isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText: incoming.statusMessage ?? '', headers });
}
