/** Creates a subscription once, also when an answer is lost on its way: looks before it tries again. */
import { setTimeout as delay } from 'node:timers/promises';
import { isAppError } from '../../domain/app-error.ts';
import { type DesiredSubscription, endpointOf } from '../../domain/subscription.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import type { NewSubscription, SubscriptionClient } from '../service/subscription-client.ts';
import { differencesOf, isSameEndpoint } from './plan.ts';
import type { StepWorld } from './step-world.ts';

const triesMax = 3;
/** A request that was cut off may still be at work: time before the account is looked at. */
const lookAfterDefaultMs = 1_500;

/**
 * Resolves with the subscription that was made. Rejects as `create` does; with `unavailable` when it
 * is still not there after the last try.
 */
export async function createOnce(
  { name, events, filter, status }: DesiredSubscription,
  { client, publicUrl, credentials, listed, random, lookAfterMs }: StepWorld,
): Promise<CatalogueSubscription> {
  const endpoint = endpointOf(publicUrl, name);
  const wanted = { events, filter, status, endpoint, credentials };
  const knownIds = new Set(listed.map(({ id }) => id));
  const isIt = (one: CatalogueSubscription) =>
    !knownIds.has(one.id) &&
    one.status !== 'cancelled' &&
    isSameEndpoint(one.endpoint, endpoint) &&
    differencesOf(wanted, one).length === 0;
  for (let tries = 1; ; tries += 1) {
    const { created, failure, isRefused } = await attempt(client, wanted);
    if (created !== null) return created;
    if (isRefused && tries === 1) throw failure;
    await delay((lookAfterMs ?? lookAfterDefaultMs) * (1 + random()));
    const found = (await client.list()).find(isIt);
    if (found !== undefined) return found;
    // An earlier try that was still at work may have taken the place that this one was refused.
    if (isRefused || tries === triesMax) throw failure;
  }
}

/** One try. Unless it is refused, it is not known after a failure whether the subscription exists. */
async function attempt(client: SubscriptionClient, wanted: NewSubscription) {
  try {
    const created = await client.create(wanted);
    const failure = new Error('The answer to the creation could not be read.');
    return { created, failure, isRefused: false };
  } catch (failure) {
    return { created: null, failure, isRefused: !isAppError(failure, 'unavailable') };
  }
}
