/** Delivers items to a web service, signed as specified by Standard Webhooks 1.0 (standardwebhooks.com). */

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
} from '../../../core/http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../../core/http/foreign-text.ts';
import { exactUrl } from '../../../core/http/network-address.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { ok } from '../../../core/terms/evaluation.ts';
import { cloudEventOf, cloudEventType, type FormatName } from '../formats.ts';
import {
  certificatesForm,
  defineSinkKind,
  type FileForm,
  nameField,
  type TargetAnswer,
  unavailable,
  unusable,
} from '../target.ts';

/** Statuses after which the same request may succeed later, in addition to 500 and above. */
const retryableStatuses = new Set([408, 425, 429]);

/** Statuses caused by the URL or the signature rather than the item, in addition to all 3xx. */
const misconfiguredStatuses = new Set([401, 403, 404, 405, 410]);

/** Length limits of a secret (Standard Webhooks 1.0, "Signature scheme"). */
const secretBytes = { min: 24, max: 64 };

const webhookSecretForm: FileForm = {
  isSecret: true,
  faultOf: (secret) => {
    if (secret === '') return 'the file is empty.';
    const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1] ?? '';
    const { byteLength } = Buffer.from(base64, 'base64');
    const { min, max } = secretBytes;
    if (base64.length % 4 === 0 && byteLength >= min && byteLength <= max) return null;
    return `the file must contain whsec_ and ${min} to ${max} random bytes in base64. To create a secret, run: echo "whsec_$(openssl rand -base64 32)"`;
  },
};

export interface WebhookSettings {
  url: string;
  secret: string | null;
  ca: string | null;
  format?: FormatName;
}

/**
 * Posts `{ type, timestamp, data }`: for example `product.created`, the time of receipt, and the document. Sends the
 * headers of Standard Webhooks; `webhook-signature` only with a secret. Any 2xx status acknowledges the item, even if
 * the body fails. With the format `cloudevents`, the body is a CloudEvent instead, and signed the same way. Does not
 * follow redirects, so that items are only sent to the configured URL.
 */
export const webhook = defineSinkKind({
  fields: {
    /** The https URL to which each item is posted; http only to this machine. */
    webhook: exactUrl.optional(),
    /** File with the secret that signs webhooks (`whsec_…`); must not be readable by everyone. */
    secretFile: nameField('hook-secret').optional(),
    /** PEM file with a certificate authority to trust for the webhook, in addition to the public ones. */
    ca: nameField('authority.pem').optional(),
  },
  faults: ({ webhook, secretFile, ca }) => {
    const faults: string[] = [];
    if (secretFile !== undefined && webhook === undefined) {
      faults.push('secretFile requires webhook');
    }
    if (ca !== undefined && webhook?.startsWith('https:') !== true) {
      faults.push('ca requires an https webhook; for NATS, set nats.ca');
    }
    return faults;
  },
  formats: ['cloudevents'],
  concurrency: 8,
  settings: ({ webhook: url = '', secretFile, ca, format }, readFile): WebhookSettings => ({
    url,
    secret: readFile('secretFile', secretFile, webhookSecretForm),
    ca: readFile('ca', ca, certificatesForm),
    ...(format && { format }),
  }),
  open: ({ url, secret, ca, format }, context) => {
    const isCloudEvent = format === 'cloudevents';
    const trusting = ca === null ? null : createTrustingFetch(ca);
    const send = trusting?.fetch ?? context.fetch;
    const drain = createDrain();
    return {
      deliver: async (item, signal) => {
        const { id, event, receivedAt } = item;
        const document = isCloudEvent
          ? cloudEventOf(item, context.urls)
          : { type: `product.${event}`, timestamp: receivedAt, data: item };
        const body = JSON.stringify(document);
        // New for each attempt, because receivers reject timestamps older than some minutes.
        const timestamp = String(Math.floor(context.nowUs() / 1_000_000));
        const headers = {
          'content-type': isCloudEvent ? cloudEventType : 'application/json',
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
          drain.add(response.body);
          return { kind: 'acknowledged' };
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
    if (fault !== null) return unusable(host, fault);
    const signed =
      secret === null ? ' Requests are not signed, because secretFile is not set.' : '';
    return ok(`${host} is reachable.${signed}`);
  },
});

/** Returns the header `webhook-signature`. The secret is `whsec_` and the key in base64; `timestamp` is in seconds. */
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
  const detail = foreignText(hint, { secrets, charactersMax: hintCharactersMax });
  const reason = `it answered ${status}${detail === '' ? '' : `: ${detail}`}`;
  if (status < 400) {
    const advice = 'redirects are not followed: set the final URL';
    return { kind: 'misconfigured', reason: `it answered ${status}, ${advice}` };
  }
  if (misconfiguredStatuses.has(status)) return { kind: 'misconfigured', reason };
  if (status >= 500 || retryableStatuses.has(status)) {
    return { kind: 'unavailable', reason, retryAfterMs: retryAfterMs(headers) };
  }
  return { kind: 'refused', reason };
}

/** Maximum bytes of a body to read in order to keep its connection open. */
const bytesMax = 65_536;

/** Maximum bodies at a time; above it, the oldest is cancelled. */
const drainedMax = 64;

/** Reads short response bodies to their end in the background, so that their connections can be reused. */
function createDrain() {
  const open = new Set<ReadableStreamDefaultReader<Uint8Array>>();
  // Ends the read, and closes the connection.
  const cancel = (reader: ReadableStreamDefaultReader<Uint8Array>) => {
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
    add: (body: ReadableStream<Uint8Array> | null) => {
      if (body === null) return;
      const reader = body.getReader();
      open.add(reader);
      drain(reader).then(
        () => cancel(reader),
        () => cancel(reader),
      );
      const [oldest] = open;
      if (open.size > drainedMax && oldest !== undefined) cancel(oldest);
    },
    close: () => {
      for (const reader of open) cancel(reader);
    },
  };
}

/**
 * Creates a `fetch` for https URLs that trusts the certificate authorities in `pem`, in addition to the public ones and
 * the system's. It does not follow redirects. `close` ends open connections.
 */
function createTrustingFetch(pem: string) {
  const agent = new Agent({
    keepAlive: true,
    secureContext: contextTrusting([pem]),
    // Explicit, because an environment variable could otherwise disable the checks.
    rejectUnauthorized: true,
  });
  const send: typeof fetch = async (input, init) => {
    const prepared = new Request(input, init);
    // The request's own signal may be garbage-collected before it is aborted.
    const signal = init?.signal ?? prepared.signal;
    const body = Buffer.from(await prepared.arrayBuffer());
    return new Promise((resolve, reject) => {
      const { method, url } = prepared;
      const headers = {
        ...Object.fromEntries(prepared.headers),
        'content-length': body.byteLength,
      };
      // The signal also ends the response body.
      const sent = request(url, { method, headers, signal, agent });
      // Node's error for an abort does not distinguish a timeout; the signal's reason does.
      const fail = (error: unknown) => reject(signal.aborted ? signal.reason : error);
      sent.on('response', (incoming) => {
        // An error thrown in a listener would end the process.
        try {
          resolve(responseOf(incoming));
        } catch (error) {
          incoming.destroy();
          fail(error);
        }
      });
      sent.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy();
        fail(
          new UnusableAnswer(
            `it answered ${statusCode} instead of a result of the POST request: check the URL`,
          ),
        );
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

/** Throws UnusableAnswer for an invalid status. */
function responseOf(incoming: IncomingMessage): Response {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? '', incoming.rawHeaders[i + 1] ?? '');
  }
  const status = incoming.statusCode ?? 0;
  if (status < 200 || status > 599) {
    throw new UnusableAnswer(`it answered with an invalid status (${status})`);
  }
  const isEmpty = [204, 205, 304].includes(status);
  if (isEmpty) incoming.resume();
  const body = isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText: incoming.statusMessage ?? '', headers });
}
