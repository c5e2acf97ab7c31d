/** A client of the sandbox's catalogue, entered as the owner of its account. */
import { expect } from 'vitest';
import {
  createSubscriptionClient,
  type NewSubscription,
} from '../../../src/admin/subscription-client.ts';
import type { AccessTokens } from '../../../src/domain/account.ts';
import type { AppError } from '../../../src/domain/app-error.ts';
import type { OutboundTiming } from '../../../src/http/outbound-client.ts';
import type { ServiceSettingsInput } from '../../../src/sandbox/services/service-settings.ts';
import { wholeTextOf } from '../../config/environment.ts';
import { failureOf, startAccount } from '../session/account.ts';

export const endpoint = 'https://localhost:8443/notifications/default';
const credentials = { username: 'catalogue', password: 'endpoint-password' };
/** A subscription that runs from the start. */
export const running: NewSubscription = {
  events: ['created', 'modified'],
  filter: "Collection/Name eq 'SENTINEL-1'",
  status: 'running',
  endpoint,
  credentials,
};
/** The same, but paused. */
export const paused: NewSubscription = { ...running, status: 'paused' };
export const unknownId = '00000000-0000-4000-8000-000000000000';

/** Starts the sandbox with some knobs; it is closed when the test is over. */
export async function startClient(service: ServiceSettingsInput = {}) {
  const account = await startAccount(service);
  const { sandbox } = account;
  const clientWith = (tokens: AccessTokens, timing: Partial<OutboundTiming> = {}) =>
    createSubscriptionClient({
      catalogueUrl: sandbox.catalogueUrl,
      tokens,
      fetch,
      random: () => 0,
      timing: { retryDelayMs: 1, ...timing },
    });
  const client = clientWith(account.tokens());
  /** Creates and tells the id; the answer must have been readable. */
  const create = async (subscription: NewSubscription) => {
    const created = await client.create(subscription);
    if (created === null) throw new Error('The answer could not be read.');
    return created.id;
  };
  const statuses = async () => (await client.list()).map(({ status }) => status);
  const creations = () =>
    sandbox
      .requests()
      .filter(({ method, path }) => method === 'POST' && path.endsWith('Subscriptions'));
  return { ...account, client, clientWith, create, statuses, creations };
}

/** The error of a call; fails when there is none, or when it shows a secret. */
export async function errorOf(call: Promise<unknown>): Promise<AppError> {
  const error = await failureOf(call);
  expect(wholeTextOf(error)).not.toContain(credentials.password);
  return error;
}
