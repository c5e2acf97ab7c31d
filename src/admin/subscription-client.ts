/** Client of the catalogue's subscription API (specification, Endpoints). */

import { z } from 'zod';
import {
  createOutboundClient,
  type OutboundAnswer,
  type OutboundClient,
  type OutboundRequest,
  type OutboundTiming,
} from '../core/http/outbound-client.ts';
import {
  foreignText,
  isWebPage,
  readServiceMessage,
  type ServiceMessage,
  serviceError,
} from '../core/http/service-error.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import { parseDate } from '../core/terms/dates.ts';
import type { CredentialPair } from '../core/terms/ports.ts';
import {
  type RequestedStatus,
  type SubscriptionEvent,
  sortedEvents,
} from '../core/terms/subscription.ts';
import type { AccessTokens } from './account.ts';

export interface NewSubscription {
  events: readonly SubscriptionEvent[];
  /** Empty for every product; then no FilterParam is sent. */
  filter: string;
  status: RequestedStatus;
  /** Null for a pull subscription. */
  address: { endpoint: string; credentials: CredentialPair } | null;
}

/** Editable properties; a pull subscription has only a status. */
export interface SubscriptionEdit {
  status?: RequestedStatus;
  endpoint?: string;
  credentials?: CredentialPair;
}

/**
 * Client of the subscription API. Calls reject with `unauthorized` when the token is refused, `invalid` or
 * `conflict` when the service refuses the request (its message is quoted), `too_many` and `unavailable` when a
 * retry may succeed, and as `AccessTokens` does. Errors contain no credentials.
 */
export interface SubscriptionClient {
  /** Lists all subscriptions of the account, including pull subscriptions. */
  list(): Promise<CatalogueSubscription[]>;
  /**
   * Not retried: after `unavailable` the subscription may exist, so the caller must list first. Null when
   * the answer was a success but could not be read.
   */
  create(subscription: NewSubscription): Promise<CatalogueSubscription | null>;
  /**
   * Rejects with `not_found` for an unknown id, and with `conflict` when the answer is a success but the
   * status has not changed. May be repeated.
   */
  edit(id: string, edit: SubscriptionEdit): Promise<void>;
  /** Resolves if it does not exist. */
  delete(id: string): Promise<void>;
}

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
  const one = (id: string) => subscriptionUrl(options.catalogueUrl, id);

  async function list() {
    const answer = await call({ method: 'GET', url: `${all}/Info`, purpose: 'list subscriptions' });
    return readSubscriptionList(answer.json);
  }

  async function create(subscription: NewSubscription) {
    const body = bodyOf(subscription);
    const { address } = subscription;
    const secrets = secretsOf(address?.credentials);
    const purpose = 'create the subscription';
    const { json } = await call({ method: 'POST', url: all, body, purpose, secrets });
    return readSubscription(json);
  }

  async function edit(id: string, changes: SubscriptionEdit) {
    const body = propertiesOf(changes);
    const secrets = secretsOf(changes.credentials);
    const purpose = `change ${named(id)}`;
    const { json } = await call({ method: 'PATCH', url: one(id), body, purpose, id, secrets });
    if (changes.status !== undefined) requireStatus(changes.status, readSubscription(json));
  }

  async function remove(id: string) {
    try {
      await call({ method: 'DELETE', url: one(id), purpose: `delete ${named(id)}`, id });
    } catch (error) {
      if (isAppError(error, 'not_found')) return;
      // The refusal may mean that it does not exist, or that the URL is wrong: the list decides.
      const refused = isAppError(error, 'invalid') || isAppError(error, 'conflict');
      const isSame = (other: CatalogueSubscription) => other.id.toLowerCase() === id.toLowerCase();
      if (!refused || (await list()).some(isSame)) throw error;
    }
  }

  return { list, create, edit, delete: remove };
}

/** Checks the status: beyond a limit, a success may change nothing (not in the specification). */
function requireStatus(requested: RequestedStatus, shown: CatalogueSubscription | null): void {
  if (shown === null || shown.status === requested) return;
  const message = `The catalogue confirmed the change, but ${named(shown.id)} is still ${shown.status}.`;
  const advice = 'Check the number of running subscriptions: `earshot subscriptions list`.';
  throw new AppError('conflict', message, { advice });
}

/** Returns the password, and its encoding in the Basic header of a delivery. */
function secretsOf(credentials: CredentialPair | undefined): string[] {
  if (credentials === undefined) return [];
  const { username, password } = credentials;
  return [password, Buffer.from(`${username}:${password}`).toString('base64')];
}

/** Returns the body of a creation request (specification, Create subscription). */
function bodyOf({ events, filter, status, address }: NewSubscription) {
  return {
    SubscriptionType: address === null ? 'pull' : 'push',
    SubscriptionEvent: events,
    FilterParam: filter === '' ? undefined : filter,
    StageOrder: false,
    Priority: 1,
    ...propertiesOf({ status, ...address }),
  };
}

/** Undefined values are not sent. */
function propertiesOf({ status, endpoint, credentials }: SubscriptionEdit) {
  return {
    Status: status,
    NotificationEndpoint: endpoint,
    NotificationEpUsername: credentials?.username,
    NotificationEpPassword: credentials?.password,
  };
}

// An array in every known answer; one client sends a string with commas (facts 1.3).
const events = z
  .union([z.string().transform((text) => text.split(',')), z.array(z.string())])
  .transform((names) => sortedEvents(names.map((name) => name.trim().toLowerCase())));

const date = z
  .string()
  .nullish()
  .catch(null)
  .transform((text) => (text ? (parseDate(text)?.us ?? null) : null));

/** Removes user name and password from the URL. */
function withoutUserInfo(endpoint: string | null): string | null {
  return endpoint?.replace(/^(\w+:\/\/)[^/?#]*@/, '$1…@') ?? null;
}

/** Schema of one subscription; requires only the id and the status. */
const catalogueSubscriptionSchema = z
  .looseObject({
    Id: z.string().min(1),
    Status: z.string().transform((status) => status.toLowerCase()),
    SubscriptionType: z.string().nullish().catch(null),
    SubscriptionEvent: events.catch([]),
    FilterParam: z.string().nullish().catch(null),
    NotificationEndpoint: z.string().nullish().catch(null),
    SubmissionDate: date,
    LastNotificationDate: date,
  })
  .transform((raw) => ({
    id: raw.Id,
    /** running, paused, cancelled, or an unknown one. */
    status: raw.Status,
    /** `push`, `pull`, or an unknown type. Old answers do not contain it, but only push has an endpoint (facts 1.3). */
    type: raw.SubscriptionType?.toLowerCase() ?? (raw.NotificationEndpoint ? 'push' : 'pull'),
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

/** Reads an answer with one subscription; null for another answer. */
function readSubscription(json: unknown): CatalogueSubscription | null {
  return catalogueSubscriptionSchema.safeParse(json).data ?? null;
}

/**
 * Reads the list of an account. Throws `unavailable` for another answer, and also when one item cannot be
 * read: it counts against the limits, and may be a managed one.
 */
function readSubscriptionList(json: unknown): CatalogueSubscription[] {
  const items = z.array(z.unknown()).safeParse(json).data;
  if (items === undefined) {
    throw unreadable('the response is not a JSON array.', 'Check EARSHOT_CATALOGUE_URL.');
  }
  return items.map((item, index) => {
    const { data, error } = catalogueSubscriptionSchema.safeParse(item);
    if (data !== undefined) return data;
    const fields = error.issues.map(({ path }) => path.join('.')).filter((name) => name !== '');
    const missing = fields.length === 0 ? 'is not an object' : `lacks ${fields.join(' and ')}`;
    throw unreadable(`item ${index + 1} of ${items.length} ${missing}.`);
  });
}

function unreadable(reason: string, advice?: string): AppError {
  const message = `The list of subscriptions cannot be read: ${reason}`;
  return new AppError('unavailable', message, { advice });
}

/** Name in messages, and the variable with its URL. */
export const catalogue = { service: 'the catalogue', variable: 'EARSHOT_CATALOGUE_URL' };

/** Returns the URL of a subscription. Ids have no quotes in the parentheses (facts, catalogue 1.3). */
export function subscriptionUrl(catalogueUrl: string, id: string): string {
  return `${catalogueUrl}/odata/v1/Subscriptions(${encodeURIComponent(id.toWellFormed())})`;
}

/** Returns a name for messages, without the control characters that foreign text may contain. */
export function named(id: string): string {
  return `subscription ${foreignText(id, { secrets: [], charactersMax: 100 })}`;
}

interface AuthorizedRequest extends Omit<OutboundRequest, 'headers'> {
  /** Subscription in the path; a missing one is reported as `not_found`. */
  id?: string;
  /** Secrets of the body, removed from messages if the service repeats them. */
  secrets?: readonly string[];
}

/** Resolves with an answer of 200 to 299, else rejects with the documented codes. */
export function createAuthorizedCall(send: OutboundClient, tokens: AccessTokens) {
  return async ({ id, secrets = [], ...request }: AuthorizedRequest): Promise<OutboundAnswer> => {
    const attempt = async (token: string) => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
      const answer = await send({ ...request, headers });
      // A page may be large.
      if (answer.status >= 200 && answer.status < 300) return { answer };
      const message = readServiceMessage(answer, [token, ...secrets]);
      const refused = refusesToken(answer.status, message);
      if (refused) await tokens.refused(token);
      return { answer, message, refused };
    };
    let outcome = await attempt(await tokens.get());
    // A request with a refused token has no effect, so even a creation can be repeated.
    if (outcome.refused) outcome = await attempt(await tokens.get());
    const { answer, message, refused } = outcome;
    if (message === undefined) return answer;
    if (refused) throw serviceError(answer, message, request.purpose, 'unauthorized');
    const missing = id !== undefined && saysMissing(answer, message);
    throw serviceError(answer, message, request.purpose, missing ? 'not_found' : undefined);
  };
}

/** Includes 403 "Not authenticated", the answer of some frameworks to a missing token. */
function refusesToken(status: number, { text }: ServiceMessage): boolean {
  if (status === 401) return true;
  const complaint = /\b(token|bearer|expired|unauthori[sz]ed|authenticated)\b/i;
  return status === 403 && complaint.test(text ?? '');
}

/**
 * True for "Subscription with id … not found." (facts, catalogue 1.4), and for any other 404 except one
 * about the path: it comes from a service that does not support the request.
 */
function saysMissing(
  { status, text: body }: OutboundAnswer,
  { text, lines }: ServiceMessage,
): boolean {
  if (status < 400 || status > 499) return false;
  const complaint = [text ?? '', ...lines].join(' ');
  if (/subscription\b.*\b(not (be )?found|does not exist)/i.test(complaint)) return true;
  return status === 404 && !isWebPage(body) && !/\bpath\b|^not found$/i.test(complaint);
}
