/** A client of the subscription API, for a catalogue with answers set by the test. */

import type { AccessTokens } from '../../src/admin/account.ts';
import {
  createSubscriptionClient,
  type NewSubscription,
} from '../../src/admin/subscription-client.ts';
import type { OutboundTiming } from '../../src/core/http/outbound-client.ts';
import type { AppError } from '../../src/core/terms/app-error.ts';
import { wholeTextOf } from '../core/config/environment.ts';
import { type Answer, type SeenRequest, startServer } from '../core/http/answering-server.ts';
import { failureOf } from './account.ts';

export const id = '7ca682c3-7b21-4e9b-952e-874798101340';

export const address = {
  endpoint: 'https://earshot.example.org:8443/notifications/default',
  credentials: { username: 'catalogue', password: 'Endpoint"Pass wörd+1' },
};

export const newSubscription: NewSubscription = {
  events: ['created', 'modified'],
  filter: "Collection/Name eq 'SENTINEL-2'",
  status: 'running',
  address,
};

/** Texts that must not appear in errors. */
export const secrets = [
  'first-token',
  'second-token',
  'wörd',
  Buffer.from(`catalogue:${address.credentials.password}`).toString('base64'),
];

/** A subscription in the catalogue's format. */
export const shown = {
  Id: id,
  SubscriptionType: 'push',
  Status: 'running',
  SubscriptionEvent: ['created'],
  FilterParam: '',
  StageOrder: false,
  Priority: 1,
  NotificationEndpoint: address.endpoint,
  SubmissionDate: '2026-05-01T12:00:00.000Z',
  '@odata.context': '$metadata#OData.CSC.Subscription',
};

export const notFound: Answer = {
  status: 404,
  body: { detail: { message: `Subscription with id ${id} not found.`, request_id: 'r-404' } },
};

export async function startStandIn(
  answers: Answer[] | ((request: SeenRequest) => Answer),
  timing: Partial<OutboundTiming> = {},
) {
  const { url, requests } = await startServer(answers);
  const { tokens, refused } = listedTokens();
  const client = createSubscriptionClient({
    catalogueUrl: url,
    tokens,
    fetch,
    random: () => 0,
    timing: { retryDelayMs: 1, ...timing },
  });
  return { client, requests, refused, url };
}

/** Returns the first token until it is refused, then the second. */
export function listedTokens() {
  const refused: string[] = [];
  const tokens: AccessTokens = {
    get: async () => ['first-token', 'second-token'][refused.length] ?? 'another-token',
    refused: async (token) => void refused.push(token),
  };
  return { tokens, refused };
}

/** Returns the error of a call; fails when there is none, or when it contains a secret. */
export async function errorOf(call: Promise<unknown>): Promise<AppError> {
  const error = await failureOf(call);
  const text = wholeTextOf(error);
  const found = secrets.filter((secret) => text.includes(secret));
  if (found.length > 0)
    throw new Error(`The error contains secrets: ${found.join(', ')} in ${text}`);
  return error;
}
