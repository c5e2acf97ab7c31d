/** Hands items over to a web service, signed by the Standard Webhooks scheme (standardwebhooks.com, 1.0). */
import { createHmac } from 'node:crypto';
import type { SinkTarget } from '../domain/sinks.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import { retryAfterMs } from '../http/outbound-client.ts';
import { beginningOf, createDrain } from './answer-body.ts';
import type { HandOver } from './hand-over-document.ts';
import type { Target, TargetAnswer } from './target.ts';
import { createTrustingFetch } from './trusting-fetch.ts';

/** Statuses of a service that may take the same request later; all from 500 on are so, too. */
const passing = new Set([408, 425, 429]);
/** Statuses that speak of the address or the signature, and hardly of the one that was posted; so do all 3xx. */
const misconfigured = new Set([401, 403, 404, 405, 410]);

/**
 * Sends `{ type, timestamp, data }`: `product.created` and the like, the time of receipt, the document. The
 * scheme's headers come with it; `webhook-signature` only where there is a secret. Any 2xx has taken it, whatever
 * comes after the status. Redirects are not followed: what is posted must not travel to where another points.
 */
export function createWebhookTarget(
  { url, secret, ca }: Extract<SinkTarget, { kind: 'webhook' }>,
  world: { fetch: typeof fetch; nowUs: () => number },
): Target {
  const trusting = ca === null ? null : createTrustingFetch(ca);
  const send = trusting?.fetch ?? world.fetch;
  const drain = createDrain();
  return {
    handOver: async (item, signal) => {
      const body = webhookBody(item);
      // Of each attempt: receivers refuse what is older than some minutes.
      const timestamp = String(Math.floor(world.nowUs() / 1_000_000));
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'earshot',
        'webhook-id': item.id,
        'webhook-timestamp': timestamp,
        ...(secret !== null && {
          'webhook-signature': webhookSignature(secret, { id: item.id, timestamp, body }),
        }),
      };
      try {
        const posted = { method: 'POST', headers, body, signal, redirect: 'manual' } as const;
        const response = await send(url, posted);
        if (!response.ok) return await failureOf(response, secret);
        drain.take(response.body);
        return { kind: 'taken' };
      } catch (error) {
        return { kind: 'unavailable', reason: networkFault(error), retryAfterMs: null };
      }
    },
    close: async () => {
      drain.close();
      trusting?.close();
    },
  };
}

/** Value of `webhook-signature` for one request. The secret is `whsec_` and the key in base64; `timestamp` in seconds. */
export function webhookSignature(
  secret: string,
  { id, timestamp, body }: { id: string; timestamp: string; body: string },
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

function webhookBody(item: HandOver): string {
  return JSON.stringify({ type: `product.${item.event}`, timestamp: item.receivedAt, data: item });
}

async function failureOf(
  { status, headers, body }: Response,
  secret: string | null,
): Promise<TargetAnswer> {
  const secrets = secret === null ? [] : [secret];
  const hint = hintOf(await beginningOf(body));
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
