/** The subscription API of the catalogue (specification, Endpoints). */

import { z } from 'zod';
import type { AccessTokens } from '../domain/account.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import { parseDate } from '../domain/dates.ts';
import {
  type RequestedStatus,
  type SubscriptionEvent,
  sortedEvents,
} from '../domain/subscription.ts';
import { foreignText } from '../http/foreign-text.ts';
import {
  createOutboundClient,
  type OutboundAnswer,
  type OutboundClient,
  type OutboundRequest,
  type OutboundTiming,
} from '../http/outbound-client.ts';
import { readServiceMessage, type ServiceMessage, serviceError } from '../http/service-error.ts';

export interface EndpointCredentials {
  username: string;
  password: string;
}

export interface NewSubscription {
  events: readonly SubscriptionEvent[];
  /** Empty for every product; then no FilterParam is sent. */
  filter: string;
  status: RequestedStatus;
  endpoint: string;
  credentials: EndpointCredentials;
}

/** What of a push subscription can be edited. */
export interface SubscriptionEdit {
  status?: RequestedStatus;
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
    const purpose = `show ${named(id)}`;
    try {
      const { json } = await call({ method: 'GET', url: one(id), purpose, id });
      return readSubscription(json) ?? (await listed(id));
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
    const { json } = await call({ method: 'POST', url: all, body, purpose, secrets });
    return readSubscription(json);
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
function requireStatus(wanted: RequestedStatus, shown: CatalogueSubscription | null): void {
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
    ...changedProperties({ status, endpoint, credentials }),
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

// An array in every answer known; a client was seen to send one text with commas (facts 1.3).
const events = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
  .transform((words) => sortedEvents(words.map((word) => word.trim().toLowerCase())));

const date = z
  .string()
  .nullish()
  .catch(null)
  .transform((text) => (text ? (parseDate(text)?.us ?? null) : null));

/** A user name and password in a URL, of whomever, are shown to nobody. */
function withoutUserInfo(endpoint: string | null): string | null {
  return endpoint?.replace(/^(\w+:\/\/)[^/?#]*@/, '$1…@') ?? null;
}

/** Reads one subscription; only the id and a known kind of status must be there. */
const catalogueSubscriptionSchema = z
  .looseObject({
    Id: z.string().min(1),
    Status: z.string().transform((word) => word.toLowerCase()),
    SubscriptionType: z.string().nullish().catch(null),
    SubscriptionEvent: events.catch([]),
    FilterParam: z.string().nullish().catch(null),
    NotificationEndpoint: z.string().nullish().catch(null),
    SubmissionDate: date,
    LastNotificationDate: date,
  })
  .transform((raw) => ({
    id: raw.Id,
    /** running, paused, cancelled, or a word that is new. */
    status: raw.Status,
    /** Null before the catalogue showed it (July 2025); push is what has an endpoint. */
    type: raw.SubscriptionType?.toLowerCase() ?? null,
    /** In the order of the specification. */
    events: raw.SubscriptionEvent,
    /** Empty for every product. */
    filter: raw.FilterParam ?? '',
    /** Null for pull subscriptions. */
    endpoint: withoutUserInfo(raw.NotificationEndpoint ?? null),
    submittedAtUs: raw.SubmissionDate,
    lastNotificationAtUs: raw.LastNotificationDate,
  }));

export type CatalogueSubscription = z.infer<typeof catalogueSubscriptionSchema>;

/** Reads an answer that holds one subscription; null when it does not. */
function readSubscription(json: unknown): CatalogueSubscription | null {
  return catalogueSubscriptionSchema.safeParse(json).data ?? null;
}

/**
 * Reads the list of an account. Throws `unavailable` when it is none, and also when one item cannot
 * be read: it counts against the limits, and may be ours.
 */
function readSubscriptionList(json: unknown): CatalogueSubscription[] {
  const items = z.array(z.unknown()).safeParse(json).data;
  if (items === undefined) {
    throw unreadable('it is not a JSON array.', 'Check EARSHOT_CATALOGUE_URL.');
  }
  return items.map((item, index) => {
    const { data, error } = catalogueSubscriptionSchema.safeParse(item);
    if (data !== undefined) return data;
    const fields = error.issues.map(({ path }) => path.join('.')).filter((name) => name !== '');
    const missing = fields.length === 0 ? 'is not an object' : `lacks ${fields.join(' and ')}`;
    throw unreadable(`item ${index} of ${items.length} (from 0) ${missing}.`);
  });
}

function unreadable(why: string, advice?: string): AppError {
  const message = `The catalogue's list of subscriptions cannot be read: ${why}`;
  return new AppError('unavailable', message, { advice });
}

interface AuthorizedRequest extends Omit<OutboundRequest, 'headers'> {
  /** The subscription that the path names; makes "not found" an answer of its own. */
  id?: string;
  /** What of the body must not be shown should the service repeat it. */
  secrets?: readonly string[];
}

/** Resolves with an answer of 200 to 299, else rejects with the codes that the client promises. */
function createAuthorizedCall(send: OutboundClient, tokens: AccessTokens) {
  return async ({ id, secrets = [], ...request }: AuthorizedRequest): Promise<OutboundAnswer> => {
    const attempt = async (token: string) => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
      const answer = await send({ ...request, headers });
      const words = readServiceMessage(answer, [token, ...secrets]);
      const refused = refusesToken(answer.status, words);
      if (refused) await tokens.refused(token);
      return { answer, words, refused };
    };
    let outcome = await attempt(await tokens.get());
    // A refused request has made nothing, so that a creation, too, may be sent again.
    if (outcome.refused) outcome = await attempt(await tokens.get());
    const { answer, words, refused } = outcome;
    const { status } = answer;
    if (status >= 200 && status < 300) return answer;
    if (refused) throw serviceError(answer, words, request.purpose, 'unauthorized');
    const missing = id !== undefined && saysMissing(status, words);
    throw serviceError(answer, words, request.purpose, missing ? 'not_found' : undefined);
  };
}

/** 403 is what frameworks with such error bodies answer to a missing token: "Not authenticated". */
function refusesToken(status: number, { text }: ServiceMessage): boolean {
  if (status === 401) return true;
  const complaint = /\b(token|bearer|expired|unauthori[sz]ed|authenticated)\b/i;
  return status === 403 && complaint.test(text ?? '');
}

/**
 * True for "Subscription with id … not found." (facts, catalogue 1.4), and for any other 404 but
 * those that speak of the path: they come from a service that has no such call.
 */
function saysMissing(status: number, { text, lines }: ServiceMessage): boolean {
  if (status < 400 || status > 499) return false;
  const said = [text ?? '', ...lines].join(' ');
  if (/subscription\b.*\b(not (be )?found|does not exist)/i.test(said)) return true;
  return status === 404 && !/\bpath\b|^not found$|\(a web page\)/i.test(said);
}
