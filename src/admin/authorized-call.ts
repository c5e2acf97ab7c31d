/** Requests to the subscription API with an access token, which is renewed when the service refuses it. */

import { foreignText, isWebPage } from '../core/http/foreign-text.ts';
import type {
  OutboundAnswer,
  OutboundClient,
  OutboundRequest,
} from '../core/http/outbound-client.ts';
import {
  readServiceMessage,
  type ServiceMessage,
  serviceError,
} from '../core/http/service-error.ts';
import type { AccessTokens } from './account.ts';

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

export interface AuthorizedRequest extends Omit<OutboundRequest, 'headers'> {
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
