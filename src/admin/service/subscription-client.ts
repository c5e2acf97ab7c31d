/** The subscription API of the catalogue (specification, Endpoints). */
import { AppError, isAppError } from '../../domain/app-error.ts';
import type { SubscriptionEvent, WantedStatus } from '../../domain/subscription.ts';
import { foreignText } from '../../http/foreign-text.ts';
import { createOutboundClient, type OutboundTiming } from '../../http/outbound-client.ts';
import type { AccessTokens } from '../session/access-tokens.ts';
import { createAuthorizedCall } from './authorized-call.ts';
import {
  type CatalogueSubscription,
  readSubscription,
  readSubscriptionList,
} from './catalogue-subscription.ts';

export interface EndpointCredentials {
  username: string;
  password: string;
}

export interface NewSubscription {
  events: readonly SubscriptionEvent[];
  /** Empty for every product; then no FilterParam is sent. */
  filter: string;
  status: WantedStatus;
  endpoint: string;
  credentials: EndpointCredentials;
}

/** What of a push subscription can be edited. */
export interface SubscriptionEdit {
  status?: WantedStatus;
  endpoint?: string;
  credentials?: EndpointCredentials;
}

/**
 * All calls reject with `unauthorized` when the token is refused, `invalid` or `conflict` when the
 * service refuses the request (its own words in the message and details), `too_many` and
 * `unavailable` when it may work later, and as `AccessTokens` does. Errors hold no credentials.
 */
export interface SubscriptionClient {
  /** Everything in the account, pull subscriptions too. */
  list(): Promise<CatalogueSubscription[]>;
  /** Null when there is none of this id. Falls back to the list where the service has no such call. */
  get(id: string): Promise<CatalogueSubscription | null>;
  /**
   * Never repeated here: after `unavailable` it is not known whether the subscription exists, and
   * the caller must look first. Null when the answer could not be read, though it was a success.
   */
  create(subscription: NewSubscription): Promise<CatalogueSubscription | null>;
  /**
   * Rejects with `not_found` for an unknown id, and with `conflict` when the status is not the one asked
   * for though the answer was a success. May be repeated.
   */
  edit(id: string, edit: SubscriptionEdit): Promise<void>;
  /** PATCH to `cancelled`. Resolves for one that is gone already. */
  cancel(id: string): Promise<void>;
  /** Resolves for one that is gone already. */
  delete(id: string): Promise<void>;
}

/** What messages call it, and where its address stands. */
const catalogue = { service: 'the catalogue', variable: 'EARSHOT_CATALOGUE_URL' };

/** `catalogueUrl` is the catalogue's address without `/odata/v1` and without a last slash. */
export function createSubscriptionClient(options: {
  catalogueUrl: string;
  tokens: AccessTokens;
  fetch: typeof fetch;
  random: () => number;
  timing?: Partial<OutboundTiming>;
}): SubscriptionClient {
  const call = createAuthorizedCall(
    createOutboundClient({ ...options, ...catalogue }),
    options.tokens,
  );
  const all = `${options.catalogueUrl}/odata/v1/Subscriptions`;
  // Ids stand bare between the parentheses (facts, catalogue 1.3).
  const one = (id: string) => `${all}(${encodeURIComponent(id.toWellFormed())})`;

  async function list() {
    const answer = await call({ method: 'GET', url: `${all}/Info`, purpose: 'list subscriptions' });
    return readSubscriptionList(answer.json);
  }

  async function listed(id: string) {
    const same = (other: CatalogueSubscription) => other.id.toLowerCase() === id.toLowerCase();
    return (await list()).find(same) ?? null;
  }

  async function get(id: string) {
    const request = {
      method: 'GET',
      url: one(id),
      purpose: `show ${named(id)}`,
      id,
    } as const;
    try {
      return readSubscription((await call(request)).json) ?? (await listed(id));
    } catch (error) {
      // The call is not in the specification: a service without it refuses the path, in some words.
      if (isAppError(error, 'not_found') || isAppError(error, 'invalid')) return listed(id);
      throw error;
    }
  }

  async function create(subscription: NewSubscription) {
    const body = bodyOf(subscription);
    const secrets = secretsOf(subscription.credentials);
    const purpose = 'create the subscription';
    const request = { method: 'POST', url: all, body, purpose, secrets } as const;
    return readSubscription((await call(request)).json);
  }

  async function edit(id: string, changes: SubscriptionEdit) {
    const body = changedProperties(changes);
    if (Object.keys(body).length === 0) return;
    const secrets = changes.credentials === undefined ? [] : secretsOf(changes.credentials);
    const purpose = `change ${named(id)}`;
    const { json } = await call({ method: 'PATCH', url: one(id), body, purpose, id, secrets });
    if (changes.status !== undefined) requireStatus(changes.status, readSubscription(json));
  }

  /** A way to end a subscription; one that is gone already is what was wanted. */
  async function end(id: string, request: { method: 'PATCH' | 'DELETE'; body?: object }) {
    try {
      const purpose = `${request.method === 'PATCH' ? 'cancel' : 'delete'} ${named(id)}`;
      await call({ ...request, url: one(id), purpose, id });
    } catch (error) {
      if (isAppError(error, 'not_found')) return;
      // It may say so in other words, or the address may be wrong: the list tells them apart.
      const refused = isAppError(error, 'invalid') || isAppError(error, 'conflict');
      if (!refused || (await listed(id)) !== null) throw error;
    }
  }

  return {
    list,
    get,
    create,
    edit,
    cancel: (id) => end(id, { method: 'PATCH', body: { Status: 'cancelled' } }),
    delete: (id) => end(id, { method: 'DELETE' }),
  };
}

/** Beyond a limit a success may change nothing: the specification does not show that case. */
function requireStatus(wanted: WantedStatus, shown: CatalogueSubscription | null): void {
  if (shown === null || shown.status === wanted) return;
  throw new AppError(
    'conflict',
    `The catalogue answered with success, but ${named(shown.id)} is still ${shown.status}.`,
    { advice: 'Do too many run in the account? `earshot subscriptions list` shows all.' },
  );
}

/** An id may come from outside. */
function named(id: string): string {
  return `subscription ${foreignText(id, { secrets: [], charactersMax: 100 })}`;
}

/** The password, also as it stands in the Basic header of a delivery. */
function secretsOf({ username, password }: EndpointCredentials): string[] {
  return [password, Buffer.from(`${username}:${password}`).toString('base64')];
}

/** The body of a creation (specification, Create subscription). */
function bodyOf({ events, filter, status, endpoint, credentials }: NewSubscription) {
  return {
    SubscriptionType: 'push',
    SubscriptionEvent: [...events],
    ...(filter === '' ? {} : { FilterParam: filter }),
    StageOrder: false,
    Priority: 1,
    Status: status,
    NotificationEndpoint: endpoint,
    NotificationEpUsername: credentials.username,
    NotificationEpPassword: credentials.password,
  };
}

function changedProperties({ status, endpoint, credentials }: SubscriptionEdit) {
  return {
    ...(status === undefined ? {} : { Status: status }),
    ...(endpoint === undefined ? {} : { NotificationEndpoint: endpoint }),
    ...(credentials === undefined
      ? {}
      : {
          NotificationEpUsername: credentials.username,
          NotificationEpPassword: credentials.password,
        }),
  };
}
