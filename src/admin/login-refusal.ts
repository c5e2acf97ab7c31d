/** Says why a login failed, each cause in its own words, and what to do about it. */
import { z } from 'zod';
import { AppError, type ErrorCode } from '../domain/app-error.ts';
import { networkFault } from '../http/bounded-fetch.ts';
import { foreignText, hintOf } from '../http/foreign-text.ts';

export interface LoginContext {
  tokenUrl: string;
  clientId: string;
  /** What EARSHOT_ACCOUNT_TOTP holds. */
  totpKind: 'none' | 'code' | 'secret';
  /** What was sent and must not be shown. */
  secrets: readonly string[];
}

/** An error of the provider in OAuth's form (RFC 6749, 5.2); empty where it has none. */
export interface Refusal {
  status: number;
  error: string;
  /** A text, if the provider keeps to the rules. */
  error_description?: unknown;
}

const descriptionCharactersMax = 500;

/** The realm of a Keycloak token endpoint; of any other its origin. */
export function realmOf(tokenUrl: string): string {
  const realm = /^(.+)\/protocol\/openid-connect\/token$/.exec(tokenUrl)?.[1];
  return realm ?? new URL(tokenUrl).origin;
}

/** The error for a provider that could not be asked at all. */
export function providerUnreachable(error: unknown, { tokenUrl }: LoginContext): AppError {
  return new AppError(
    'unavailable',
    `The identity provider (${new URL(tokenUrl).host}) cannot be asked: ${networkFault(error)}.`,
    { advice: 'Try again later, or check EARSHOT_TOKEN_URL.' },
  );
}

/** The error for an answer that no token endpoint gives; `how` completes "answered …". */
export function foreignAnswer(how: string, { tokenUrl }: Pick<LoginContext, 'tokenUrl'>): AppError {
  return new AppError(
    'configuration',
    `What EARSHOT_TOKEN_URL names (${new URL(tokenUrl).host}) answered ${how}.`,
    { advice: 'Does it point elsewhere than to the token endpoint of the identity provider?' },
  );
}

/** Rejects for answers that are neither a token nor a refusal in OAuth's form; others pass unread. */
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

/** The error for a refusal. The provider's own words are in its message. */
export function refusalError(refusal: Refusal, context: LoginContext): AppError {
  const { status, error, error_description: description } = refusal;
  const words = typeof description === 'string' && description !== '' ? description : error;
  const bounds = { secrets: context.secrets, charactersMax: descriptionCharactersMax };
  const said = foreignText(words, bounds);
  const cause = causes.find(({ when }) => when(refusal, said)) ?? otherCause;
  const values: Record<string, string> = {
    host: new URL(context.tokenUrl).host,
    accountPage: `${realmOf(context.tokenUrl)}/account`,
    clientId: context.clientId,
    status: String(status),
    wrongCredentials: wrongCredentials[context.totpKind],
  };
  const fill = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, name) => values[name] ?? '');
  const advice = [fill(cause.advice ?? ''), said === '' ? '' : `It says: ${said}`];
  return new AppError(cause.code, fill(cause.message), {
    advice: advice.filter((text) => text !== '').join(' ') || undefined,
  });
}

interface Cause {
  when: (refusal: Refusal, said: string) => boolean;
  code: ErrorCode;
  /** What happened, and what to do; names in braces stand for values of the context. */
  message: string;
  advice?: string;
}

/** The first that fits counts. The texts are Keycloak's (facts, catalogue 4). */
const causes: readonly Cause[] = [
  {
    when: ({ status }) => status === 429,
    code: 'unavailable',
    message: 'The identity provider ({host}) was asked too often (429).',
    advice: 'Try again in some minutes.',
  },
  {
    when: ({ status }) => status >= 500,
    code: 'unavailable',
    message: 'The identity provider ({host}) is out of order ({status}).',
    advice: 'Try again later.',
  },
  {
    when: (_refusal, said) =>
      /\bsessions?\b.*\b(many|limit|exceeded|max\w*)\b|\b(many|max\w*)\b.*\bsessions?\b/i.test(
        said,
      ),
    code: 'unavailable',
    message: 'The account has too many open sessions.',
    advice:
      'They end by themselves within an hour, or at once at {accountPage}. Programs that log in for every request use them up.',
  },
  {
    when: ({ status, error }) => status === 403 && error === '',
    code: 'unavailable',
    message: 'The identity provider ({host}) refuses to talk to this computer (403).',
    advice: 'After too many logins it does so for a while: try again in an hour.',
  },
  {
    when: ({ error }) => error === 'invalid_client' || error === 'unauthorized_client',
    code: 'configuration',
    message:
      'The identity provider does not know the client "{clientId}", or does not let it log in with a password.',
    advice: 'Check EARSHOT_CLIENT_ID.',
  },
  {
    when: ({ error }) => /^(unsupported_grant_type|invalid_request|invalid_scope)$/.test(error),
    code: 'configuration',
    message: 'The identity provider ({host}) takes no login with user name and password.',
    advice: 'Check EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID.',
  },
  {
    when: (_refusal, said) => /\b(disabled|locked|blocked|suspended)\b/i.test(said),
    code: 'unauthorized',
    message: 'The account is disabled, for good or for a while.',
    advice: "Look at {accountPage}, or ask the provider's support.",
  },
  {
    when: (_refusal, said) => /\bset up\b|\b(activat|verif|confirm|required action)/i.test(said),
    code: 'unauthorized',
    message: 'The account is not activated, or not fully set up.',
    advice: 'Log in at {accountPage} with a browser and do what it asks for.',
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
    advice: 'Check it.',
  },
];

const otherCause: Cause = {
  when: () => true,
  code: 'unauthorized',
  message: 'The identity provider ({host}) refused the login ({status}).',
};

/** One answer for every wrong or missing part: the provider does not say which it was. */
const wrongCredentials: Record<LoginContext['totpKind'], string> = {
  none: 'Either EARSHOT_ACCOUNT_USERNAME or EARSHOT_ACCOUNT_PASSWORD is wrong, or the account has two-factor login: then set EARSHOT_ACCOUNT_TOTP too.',
  code: 'Either EARSHOT_ACCOUNT_USERNAME or EARSHOT_ACCOUNT_PASSWORD is wrong, or the code in EARSHOT_ACCOUNT_TOTP is: it is good once, for half a minute. Set a new one, or the shared secret that codes are made from.',
  secret:
    "Either EARSHOT_ACCOUNT_USERNAME or EARSHOT_ACCOUNT_PASSWORD is wrong, or EARSHOT_ACCOUNT_TOTP is not this account's secret, or its code was just used (wait half a minute), or the clock of this computer is wrong.",
};

const oauthBody = z.object({
  error: z.string().catch(''),
  error_description: z.unknown(),
});

/** What a body says that need not be in OAuth's form. */
function refusalIn(text: string): Omit<Refusal, 'status'> {
  try {
    return oauthBody.parse(JSON.parse(text));
  } catch {
    return { error: '', error_description: hintOf(text) };
  }
}
