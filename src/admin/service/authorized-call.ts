/** One call to the catalogue with a bearer token, which is replaced once when it is refused. */
import type {
  OutboundAnswer,
  OutboundClient,
  OutboundRequest,
} from '../../http/outbound-client.ts';
import type { AccessTokens } from '../session/access-tokens.ts';
import { readServiceWords, type ServiceWords, serviceError } from './service-error.ts';

export interface AuthorizedRequest extends Omit<OutboundRequest, 'headers'> {
  /** The subscription that the path names; makes "not found" an answer of its own. */
  id?: string;
  /** What of the body must not be shown should the service repeat it. */
  secrets?: readonly string[];
}

/** Resolves with an answer of 200 to 299, else rejects with what the service says. */
export type AuthorizedCall = (request: AuthorizedRequest) => Promise<OutboundAnswer>;

/** Rejects with the codes that the subscription client promises. */
export function createAuthorizedCall(send: OutboundClient, tokens: AccessTokens): AuthorizedCall {
  return async ({ id, secrets = [], ...request }) => {
    const attempt = async (token: string) => {
      const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
      const answer = await send({ ...request, headers });
      const words = readServiceWords(answer, [token, ...secrets]);
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
function refusesToken(status: number, { text }: ServiceWords): boolean {
  if (status === 401) return true;
  const complaint = /\b(token|bearer|expired|unauthori[sz]ed|authenticated)\b/i;
  return status === 403 && complaint.test(text ?? '');
}

/**
 * True for "Subscription with id … not found." (facts, catalogue 1.4), and for any other 404 but
 * those that speak of the path: they come from a service that has no such call.
 */
function saysMissing(status: number, { text, lines }: ServiceWords): boolean {
  if (status < 400 || status > 499) return false;
  const said = [text ?? '', ...lines].join(' ');
  if (/subscription\b.*\b(not (be )?found|does not exist)/i.test(said)) return true;
  return status === 404 && !/\bpath\b|^not found$|\(a web page\)/i.test(said);
}
