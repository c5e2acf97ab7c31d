/** Delivers items to a web service, signed as specified by Standard Webhooks 1.0 (standardwebhooks.com). */

import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import {
  networkFault,
  reachHost,
  readBeginning,
  retryAfterMs,
  UnusableAnswer,
} from '../../../core/http/bounded-fetch.ts';
import { exactUrl } from '../../../core/http/network-address.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../../core/http/service-error.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { ok } from '../../../core/terms/evaluation.ts';
import { type FormatName, formats } from '../formats.ts';
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
  format: FormatName;
}

/**
 * Posts `{ type, timestamp, data }`: for example `product.created`, the time of receipt, and the document. Sends the
 * headers of Standard Webhooks; `webhook-signature` only with a secret. Any 2xx status acknowledges the item, even if
 * the body fails. In another format, the body is that message instead, and signed the same way. Does not follow
 * redirects, so that items are only sent to the configured URL.
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
  formats: ['document', 'cloudevents'],
  concurrency: 8,
  settings: ({ webhook: url = '', secretFile, ca, format }, readFile): WebhookSettings => ({
    url,
    secret: readFile('secretFile', secretFile, webhookSecretForm),
    ca: readFile('ca', ca, certificatesForm),
    format,
  }),
  open: ({ url, secret, ca, format }, { urls, nowUs }) => {
    const { mediaType, write } = formats[format];
    let client: Promise<Client> | undefined;
    return {
      deliver: async (item, signal) => {
        const { id, event, receivedAt } = item;
        const body =
          format === 'document'
            ? JSON.stringify({ type: `product.${event}`, timestamp: receivedAt, data: item })
            : write(item, { urls, nowUs: nowUs() });
        // New for each attempt, because receivers reject timestamps older than some minutes.
        const timestamp = String(Math.floor(nowUs() / 1_000_000));
        const headers = {
          'content-type': mediaType,
          'content-length': Buffer.byteLength(body),
          'user-agent': 'earshot',
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          ...(secret !== null && {
            'webhook-signature': webhookSignature(secret, { id, timestamp, body }),
          }),
        };
        try {
          client ??= loadClient(url, ca);
          return await answerOf(
            await post(url, body, { ...(await client), headers, signal }),
            secret,
          );
        } catch (error) {
          return unavailable(networkFault(signal.aborted ? signal.reason : error));
        }
      },
      close: async () => (await client)?.agent?.destroy(),
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
function webhookSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/** Time to read the body of a success; a connection is closed that keeps it open for longer. */
const successBodyMs = 1_000;

/** Reads the body of a failure; that of a success only in the background, so that its connection can be reused. */
async function answerOf(response: IncomingMessage, secret: string | null): Promise<TargetAnswer> {
  const { statusCode: status = 0, headers } = response;
  const body = Readable.toWeb(response) as ReadableStream<Uint8Array>;
  // Nothing waits for the body of a success, so it has a limit of its own.
  const beginning = readBeginning(body, status < 300 ? { timeoutMs: successBodyMs } : {});
  if (status < 200 || status > 599) {
    throw new UnusableAnswer(`it answered with an invalid status (${status})`);
  }
  if (status < 300) return { kind: 'acknowledged' };
  if (status < 400) {
    const advice = 'redirects are not followed: set the final URL';
    return { kind: 'misconfigured', reason: `it answered ${status}, ${advice}` };
  }
  const secrets = secret === null ? [] : [secret];
  const hint = hintOf(new TextDecoder().decode(Buffer.concat(await beginning)));
  const detail = foreignText(hint, { secrets, charactersMax: hintCharactersMax });
  const reason = `it answered ${status}${detail === '' ? '' : `: ${detail}`}`;
  if (misconfiguredStatuses.has(status)) return { kind: 'misconfigured', reason };
  if (status >= 500 || retryableStatuses.has(status)) {
    const get = (name: string) => String(headers[name] ?? '');
    return { kind: 'unavailable', reason, retryAfterMs: retryAfterMs({ get }) };
  }
  return { kind: 'refused', reason };
}

type Client = Awaited<ReturnType<typeof loadClient>>;

/**
 * Loads the client with the first delivery: an import of node:http takes 20 ms, because it also loads Node's fetch. Trusts
 * the certificate authorities in `ca`, the public ones and the system's.
 */
async function loadClient(url: string, ca: string | null) {
  if (!url.startsWith('https:')) {
    const { request } = await import('node:http');
    return { request, agent: undefined };
  }
  const { Agent, request } = await import('node:https');
  const agent = new Agent({
    keepAlive: true,
    secureContext: contextTrusting(ca === null ? [] : [ca]),
    // Explicit, because an environment variable could otherwise disable the checks.
    rejectUnauthorized: true,
  });
  return { request, agent };
}

/** Sends a request without following redirects. The signal also ends the response body. */
function post(
  url: string,
  body: string,
  { request, ...options }: Client & { headers: object; signal: AbortSignal },
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: 'POST', ...options, headers: { ...options.headers } });
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.on('close', () =>
      reject(new UnusableAnswer('it closed the connection without an answer')),
    );
    sent.end(body);
  });
}
