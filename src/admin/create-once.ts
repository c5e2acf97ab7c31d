/** Creates a subscription once, even if the answers to the requests are lost. */
import { setTimeout as delay } from 'node:timers/promises';
import { isAppError } from '../domain/app-error.ts';
import { type DesiredSubscription, endpointFor } from '../domain/subscription.ts';
import { differencesOf, isSameEndpoint } from './plan.ts';
import type { StepContext } from './plan-context.ts';
import type {
  CatalogueSubscription,
  NewSubscription,
  SubscriptionClient,
} from './subscription-client.ts';

const attemptsMax = 3;

/** Delay before listing the account: a request without an answer may still be in progress. */
const listDelayDefaultMs = 1_500;

/**
 * Creates a subscription and resolves with it. Rejects as `create` does, and with `unavailable` when
 * it does not exist after the last attempt.
 */
export async function createOnce(
  { name, type, events, filter, status }: DesiredSubscription,
  { client, publicUrl, credentials, listed, random, listDelayMs }: StepContext,
): Promise<CatalogueSubscription> {
  const endpoint = endpointFor(publicUrl, { name, type });
  const address = endpoint === null ? null : { endpoint, credentials };
  const desired = { type, events, filter, status, address };
  const knownIds = new Set(listed.map(({ id }) => id));
  const isCreated = (one: CatalogueSubscription) =>
    !knownIds.has(one.id) &&
    one.status !== 'cancelled' &&
    isSameEndpoint(one.endpoint, endpoint) &&
    differencesOf(desired, one).length === 0;
  for (let attempts = 1; ; attempts += 1) {
    const { created, failure, isRefused } = await attempt(client, desired);
    if (created !== null) return created;
    if (isRefused && attempts === 1) throw failure;
    await delay((listDelayMs ?? listDelayDefaultMs) * (1 + random()));
    const found = (await client.list()).find(isCreated);
    if (found !== undefined) return found;
    // The refusal may come from an earlier attempt that was still in progress and reached the limit.
    if (isRefused || attempts === attemptsMax) throw failure;
  }
}

/** Sends the request once. After a failure other than a refusal, the subscription may exist. */
async function attempt(client: SubscriptionClient, desired: NewSubscription) {
  try {
    const created = await client.create(desired);
    const failure = new Error('The response to the create request could not be read.');
    return { created, failure, isRefused: false };
  } catch (failure) {
    return { created: null, failure, isRefused: !isAppError(failure, 'unavailable') };
  }
}
