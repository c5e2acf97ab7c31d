/** Delivers items to a web service, signed as specified by Standard Webhooks 1.0 (standardwebhooks.com). */

import { createHash, createHmac } from 'node:crypto';
import { z } from 'zod';
import { type FormatName, formats, type Message } from '../../messages/formats.ts';
import { defineSinkKind, type FileForm, nameField } from '../target.ts';
import {
  checkHost,
  createHttpClient,
  type HttpSettings,
  httpFields,
  httpSettings,
  serviceUrl,
} from './http-client.ts';

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

export interface WebhookSettings extends HttpSettings {
  secret: string | null;
  method: 'POST' | 'PUT' | 'PATCH';
  mode: 'structured' | 'binary';
  /** Bodies are arrays of messages. */
  isBatch: boolean;
}

const isCloudEvents = (format: FormatName = 'document') => format.startsWith('cloudevents');

/**
 * Sends `{ type, timestamp, data }`: for example `product.created`, the time of receipt, and the document. In another
 * format, the body is that message. Sends the headers of Standard Webhooks; `webhook-signature` only with a secret. Any 2xx
 * status acknowledges the item, even if the body fails.
 */
export const webhook = defineSinkKind({
  fields: {
    /** The https URL to which each item is sent; http only to this machine, and to hosts in `allowHttpTo`. */
    webhook: serviceUrl.optional(),
    /** File with the secret that signs webhooks (`whsec_…`); must not be readable by everyone. */
    secretFile: nameField('hook-secret').optional(),
    /** Method of the request; `POST` by default. */
    method: z.enum(['POST', 'PUT', 'PATCH']).optional(),
    /** Form of a CloudEvent: as JSON (`structured`, default), or attributes in headers and data in the body. */
    mode: z.enum(['structured', 'binary']).optional(),
    ...httpFields,
  },
  faults: ({ webhook: url, batch, format, secretFile, method, mode }) => {
    const faults: string[] = [];
    for (const [name, value] of Object.entries({ secretFile, method, mode })) {
      if (value !== undefined && url === undefined) faults.push(`${name} requires webhook`);
    }
    if (mode !== undefined && !isCloudEvents(format))
      faults.push("mode requires format: 'cloudevents'");
    if (mode === 'binary' && batch !== undefined) {
      faults.push('mode binary and batch must not be set together');
    }
    return faults;
  },
  batches: true,
  concurrency: 8,
  settings: (sink, readFile): WebhookSettings => {
    const { webhook: url = '', secretFile, method = 'POST', mode = 'structured', batch } = sink;
    return {
      ...httpSettings(url, sink, readFile),
      secret: readFile('secretFile', secretFile, webhookSecretForm),
      ...{ method, mode, isBatch: batch !== undefined },
    };
  },
  open: (settings, { nowUs, format }) => {
    const { secret, method, isBatch } = settings;
    const client = createHttpClient(settings, secret === null ? [] : [secret]);
    const send = async (items: readonly Message[], signal: AbortSignal) => {
      const { headers, body } = contentOf(items, format, settings);
      const id = isBatch ? idOf(items) : (items[0]?.document.id ?? '');
      // New for each attempt, because receivers reject timestamps older than some minutes.
      const timestamp = String(Math.floor(nowUs() / 1_000_000));
      const signed = secret && {
        'webhook-signature': webhookSignature(secret, { id, timestamp, body }),
      };
      const all = { ...headers, 'webhook-id': id, 'webhook-timestamp': timestamp, ...signed };
      return (await client.send({ method, headers: all, body }, signal)).answer;
    };
    return {
      deliver: (item, signal) => send([item], signal),
      deliverBatch: send,
      close: client.close,
    };
  },
  check: async (settings, { signal }) => {
    const remark = ' Requests are not signed, because secretFile is not set.';
    return checkHost(settings, signal, settings.secret === null ? remark : '');
  },
});

/** Returns the id of a batch: that of its items, in their order. */
function idOf(items: readonly Message[]): string {
  const hash = createHash('sha256').update(items.map(({ document }) => document.id).join(' '));
  return `b_${hash.digest('base64url')}`;
}

/** Returns the body, and the headers that describe it. */
function contentOf(
  items: readonly Message[],
  format: FormatName,
  { mode, isBatch }: Pick<WebhookSettings, 'mode' | 'isBatch'>,
): { headers: Record<string, string>; body: string } {
  const { mediaType, batchType } = formats[format];
  const bodies = items.map((item) => bodyOf(item, format));
  if (isBatch) return { headers: { 'content-type': batchType }, body: `[${bodies.join(',')}]` };
  const [text = ''] = bodies;
  return mode === 'binary'
    ? binaryEvent(text)
    : { headers: { 'content-type': mediaType }, body: text };
}

function bodyOf({ document, text }: Message, format: FormatName): string {
  if (format !== 'document') return text;
  const { event, receivedAt } = document;
  const head = JSON.stringify({ type: `product.${event}`, timestamp: receivedAt });
  return `${head.slice(0, -1)},"data":${text}}`;
}

/** Returns a CloudEvent in binary mode (CloudEvents 1.0, HTTP protocol binding, 3.1). */
function binaryEvent(text: string) {
  const { data, datacontenttype, ...attributes } = JSON.parse(text) as Record<string, unknown>;
  // Characters outside of printable ASCII, blanks, quotes and % are percent-encoded (3.1.3.2).
  const encoded = (value: unknown) =>
    String(value)
      .toWellFormed()
      .replaceAll(/[^!#$&-~]/gu, encodeURIComponent);
  const headers = Object.entries(attributes).map(([name, value]) => [`ce-${name}`, encoded(value)]);
  const type = { 'content-type': String(datacontenttype) };
  return { headers: { ...type, ...Object.fromEntries(headers) }, body: JSON.stringify(data) };
}

/** Returns the header `webhook-signature`. The secret is `whsec_` and the key in base64; `timestamp` is in seconds. */
function webhookSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}
