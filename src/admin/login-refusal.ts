/** Explains failed logins: the error and advice for each cause. */
import { z } from 'zod';
import { AppError, type ErrorCode } from '../domain/app-error.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintOf } from '../http/foreign-text.ts';

export interface LoginContext {
  tokenUrl: string;
  clientId: string;
  /** Kind of EARSHOT_ACCOUNT_TOTP. */
  totpKind: 'none' | 'code' | 'secret';
  /** Secrets of the request, removed from messages. */
  secrets: readonly string[];
}

/** An error of the provider in OAuth's form (RFC 6749, 5.2); empty where it has none. */
export interface Refusal {
  status: number;
  error: string;
  /** A string, if the provider follows the RFC. */
  error_description?: unknown;
}

const descriptionCharactersMax = 500;

/** Returns the realm of a Keycloak token endpoint, or the origin of another one. */
export function realmOf(tokenUrl: string): string {
  const realm = /^(.+)\/protocol\/openid-connect\/token$/.exec(tokenUrl)?.[1];
  return realm ?? new URL(tokenUrl).origin;
}

/** Returns the error for a request without an answer. */
export function providerUnreachable(error: unknown, { tokenUrl }: LoginContext): AppError {
  return new AppError(
    'unavailable',
    `The identity provider (${new URL(tokenUrl).host}) cannot be reached: ${networkFault(error)}.`,
    { advice: 'Retry later. If this happens again, check EARSHOT_TOKEN_URL.' },
  );
}

/** Returns the error for an answer that is not from a token endpoint; `how` completes "answered …". */
export function foreignAnswer(how: string, { tokenUrl }: Pick<LoginContext, 'tokenUrl'>): AppError {
  return new AppError(
    'configuration',
    `EARSHOT_TOKEN_URL (${new URL(tokenUrl).host}) answered ${how}.`,
    { advice: 'Set EARSHOT_TOKEN_URL to the token endpoint of the identity provider.' },
  );
}

/** Rejects for answers that are neither a token nor an OAuth error; does not read other bodies. */
export async function refuseForeignAnswer(answer: Response, context: LoginContext): Promise<void> {
  const { status, headers } = answer;
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (status >= 300 && status < 400) throw foreignAnswer(`with a redirect (${status})`, context);
  if (status === 429 || status >= 500 || (status === 403 && type !== 'application/json')) {
    throw refusalError({ status, ...refusalIn(await answer.clone().text()) }, context);
  }
  if (type === 'application/json') return;
  const kind = /^[\w.+-]{1,60}\/[\w.+-]{1,60}$/.test(type) ? type : 'something without a type';
  throw foreignAnswer(`with ${kind} instead of JSON (${status})`, context);
}

/** Returns the error for a refusal. Its advice quotes the provider's message. */
export function refusalError(refusal: Refusal, context: LoginContext): AppError {
  const { status, error, error_description: description } = refusal;
  const text = typeof description === 'string' && description !== '' ? description : error;
  const bounds = { secrets: context.secrets, charactersMax: descriptionCharactersMax };
  const reported = foreignText(text, bounds);
  const cause = causes.find(({ when }) => when(refusal, reported)) ?? otherCause;
  const values: Record<string, string> = {
    host: new URL(context.tokenUrl).host,
    accountPage: `${realmOf(context.tokenUrl)}/account`,
    clientId: context.clientId,
    status: String(status),
    wrongCredentials: wrongCredentials[context.totpKind],
  };
  const fill = (template: string) =>
    template.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
  const answer = reported === '' ? '' : `Response: ${reported}`;
  const advice = [fill(cause.advice ?? ''), answer];
  return new AppError(cause.code, fill(cause.message), {
    advice: advice.filter((part) => part !== '').join(' ') || undefined,
  });
}

interface Cause {
  when: (refusal: Refusal, reported: string) => boolean;
  code: ErrorCode;
  /** Names in braces stand for values of the context. */
  message: string;
  advice?: string;
}

/** The first match applies. The texts are Keycloak's (facts, catalogue 4). */
const causes: readonly Cause[] = [
  {
    when: ({ status }) => status === 429,
    code: 'unavailable',
    message: 'The identity provider ({host}) received too many requests (429).',
    advice: 'Retry in a few minutes.',
  },
  {
    when: ({ status }) => status >= 500,
    code: 'unavailable',
    message: 'The identity provider ({host}) has an internal error ({status}).',
    advice: 'Retry later.',
  },
  {
    when: (_refusal, reported) =>
      /\bsessions?\b.*\b(many|limit|exceeded|max\w*)\b|\b(many|max\w*)\b.*\bsessions?\b/i.test(
        reported,
      ),
    code: 'unavailable',
    message: 'The account has too many open sessions.',
    advice:
      'Sessions expire within an hour. To end sessions now: {accountPage}. A common cause is a program that logs in for every request.',
  },
  {
    when: ({ status, error }) => status === 403 && error === '',
    code: 'unavailable',
    message: 'The identity provider ({host}) blocks this machine (403).',
    advice: 'This can be a temporary block after too many logins. Retry in an hour.',
  },
  {
    when: ({ error }) => error === 'invalid_client' || error === 'unauthorized_client',
    code: 'configuration',
    message:
      'The identity provider does not know the client "{clientId}", or does not allow password logins for this client.',
    advice: 'Check EARSHOT_CLIENT_ID.',
  },
  {
    when: ({ error }) => /^(unsupported_grant_type|invalid_request|invalid_scope)$/.test(error),
    code: 'configuration',
    message: 'The identity provider ({host}) does not support logins with user name and password.',
    advice: 'Check EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID.',
  },
  {
    when: (_refusal, reported) => /\b(disabled|locked|blocked|suspended)\b/i.test(reported),
    code: 'unauthorized',
    message: 'The account is disabled, permanently or temporarily.',
    advice: "Check {accountPage}, or ask the provider's support.",
  },
  {
    when: (_refusal, reported) =>
      /\bset up\b|\b(activat|verif|confirm|required action)/i.test(reported),
    code: 'unauthorized',
    message: 'The account is not activated, or not fully set up.',
    advice: 'Log in at {accountPage} with a browser, and complete the steps there.',
  },
  {
    when: ({ error }) => error === 'invalid_grant',
    code: 'unauthorized',
    message: 'The login was refused.',
    advice: '{wrongCredentials}',
  },
  {
    when: ({ status }) => status === 404,
    code: 'configuration',
    message: 'There is no token endpoint at EARSHOT_TOKEN_URL ({host} answered 404).',
    advice: 'Check EARSHOT_TOKEN_URL.',
  },
];

const otherCause: Cause = {
  when: () => true,
  code: 'unauthorized',
  message: 'The identity provider ({host}) refused the login ({status}).',
};

/** Lists all possible causes, as the provider does not report which one it is. */
const wrongCredentials: Record<LoginContext['totpKind'], string> = {
  none: 'Check EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD. If the account has two-factor login, also set EARSHOT_ACCOUNT_TOTP.',
  code: 'Check EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD. If both are correct, set EARSHOT_ACCOUNT_TOTP to the shared secret, or to a new code (a code is valid once, for 30 s).',
  secret:
    'Check EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD and EARSHOT_ACCOUNT_TOTP, and the clock of this machine. If another login has just used the code, retry after 30 s.',
};

const oauthBody = z.object({
  error: z.string().catch(''),
  error_description: z.unknown(),
});

/** Reads the error from a body, even without the form of OAuth. */
function refusalIn(text: string): Omit<Refusal, 'status'> {
  try {
    return oauthBody.parse(JSON.parse(text));
  } catch {
    return { error: '', error_description: hintOf(text) };
  }
}
