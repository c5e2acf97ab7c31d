/** The identity provider: logs in with a password, and renews a session (OAuth 2.0, Keycloak). */

import { join } from 'node:path';
import type * as openid from 'openid-client';
import { Secret, TOTP } from 'otpauth';
import { z } from 'zod';
import { AppError, isAppError } from '../domain/app-error.ts';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import { createBoundedFetch } from '../http/bounded-fetch.ts';
import {
  foreignAnswer,
  type LoginContext,
  providerUnreachable,
  realmOf,
  refusalError,
  refuseForeignAnswer,
} from './login-refusal.ts';

/** OpenID Connect's client library, which is loaded with the first login. */
type Library = typeof openid;

const answerTimeoutMs = 20_000;

/** A lifetime beyond this is as good as this: what is refused earlier is renewed anyway. */
const secondsMax = 30 * 86_400;

/** What the provider hands out. */
export interface Grant {
  accessToken: string;
  accessSeconds: number;
  refreshToken: string | null;
  refreshSeconds: number;
}

export interface IdentityProvider {
  /** `code` null for an account without two-factor login. */
  login(username: string, password: string, code: string | null): Promise<Grant>;
  /** Null when the provider no longer takes this token, so that a new login is needed. */
  refresh(refreshToken: string): Promise<Grant | null>;
}

/**
 * A public client of one token endpoint. Calls reject with `unauthorized`, `unavailable` or
 * `configuration` (login-refusal.ts). No error holds a password, code or token, in a cause neither.
 */
export function createIdentityProvider(options: {
  tokenUrl: string;
  clientId: string;
  /** What codes come from; only messages depend on it. */
  totp: string | undefined;
  fetch: typeof fetch;
  timeoutMs?: number | undefined;
}): IdentityProvider {
  const { tokenUrl, clientId, totp, timeoutMs = answerTimeoutMs } = options;
  const totpKind = totp === undefined ? 'none' : isCode(totp) ? 'code' : 'secret';
  const boundedFetch = createBoundedFetch(options.fetch);

  /** Sends one request; `secrets` are what must not show should the provider repeat it. */
  async function ask<Answer extends openid.TokenEndpointResponse | null>(
    secrets: readonly string[],
    grant: (library: Library, config: openid.Configuration) => Promise<Answer>,
  ): Promise<Answer> {
    const context: LoginContext = { tokenUrl, clientId, totpKind, secrets };
    const library = await import('openid-client');
    const config = configurationFor(library, tokenUrl, clientId);
    config.timeout = timeoutMs / 1000;
    config[library.customFetch] = async (url, { body = null, signal = null, ...init }) => {
      const response = await boundedFetch(url, { ...init, body, signal }).catch(
        (error: unknown) => {
          throw isAppError(error) ? error : providerUnreachable(error, context);
        },
      );
      await refuseForeignAnswer(response, context);
      // The library takes a challenge for the whole answer and leaves the body unread.
      response.headers.delete('www-authenticate');
      return response;
    };
    try {
      return await grant(library, config);
    } catch (error) {
      // Only our own words go on: the library's errors carry the answer, tokens included.
      if (error instanceof Error && isAppError(error.cause)) throw error.cause;
      if (error instanceof library.ResponseBodyError) throw refusalError(error, context);
      if (error instanceof library.ClientError) {
        throw foreignAnswer('with something that is no token', context);
      }
      const name = error instanceof Error ? error.name : typeof error;
      throw new AppError('internal', `The identity provider could not be asked (${name}).`);
    }
  }

  return {
    login: async (username, password, code) => {
      const parameters = { username, password, ...(code === null ? {} : { totp: code }) };
      const secrets = code === null ? [password] : [password, code];
      const answer = await ask(secrets, (library, config) =>
        library.genericGrantRequest(config, 'password', parameters),
      );
      return grantOf(answer, { tokenUrl });
    },
    refresh: async (token) => {
      const answer = await ask([token], (library, config) =>
        library.refreshTokenGrant(config, token).catch((error: unknown) => {
          const isOver =
            error instanceof library.ResponseBodyError && error.error === 'invalid_grant';
          if (isOver) return null;
          throw error;
        }),
      );
      return answer && grantOf(answer, { tokenUrl });
    },
  };
}

function configurationFor(
  library: Library,
  tokenUrl: string,
  clientId: string,
): openid.Configuration {
  const server = { issuer: realmOf(tokenUrl), token_endpoint: tokenUrl };
  const config = new library.Configuration(server, clientId, undefined, library.None());
  // Passwords travel over HTTPS, or do not leave this computer.
  if (/^http:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:|\/|$)/.test(tokenUrl)) {
    library.allowInsecureRequests(config);
  }
  return config;
}

/** Reads the fields that Keycloak adds to those of OAuth, where they are there. */
function grantOf(answer: openid.TokenEndpointResponse, context: { tokenUrl: string }): Grant {
  const { access_token: accessToken, refresh_token: refreshToken } = answer;
  // A header would refuse any other character, and quote it in its error.
  if (!isTokenText(accessToken)) {
    throw foreignAnswer('with a token that no header can hold', context);
  }
  return {
    accessToken,
    accessSeconds: secondsOf(answer.expires_in) ?? 60,
    refreshToken: isTokenText(refreshToken) ? refreshToken : null,
    refreshSeconds: secondsOf(answer.refresh_expires_in) ?? 3_600,
  };
}

/** Null when the provider does not say, or says "for ever" (0). */
function secondsOf(value: unknown): number | null {
  const seconds = Number(value);
  return seconds > 0 ? Math.min(Math.ceil(seconds), secondsMax) : null;
}

/** A code is made for a window of time, and is good once. */
const windowMs = 30_000;

/** Six digits are a code, anything else is the secret that codes are made from. */
export function isCode(totp: string): boolean {
  return /^\d{6}$/.test(totp);
}

/**
 * The code to log in with. When that of this window was used already (`lastWindow`), waits for the
 * next window, never longer than 30 s. `window` is its number, counted from 1970; null for a code
 * that was given as it is. Rejects with `configuration` when the secret is not base32.
 */
export async function oneTimeCode(
  totp: string,
  about: {
    nowUs: () => number;
    lastWindow: number | null;
    wait: (ms: number) => Promise<unknown>;
  },
): Promise<{ code: string; window: number | null }> {
  const { nowUs, lastWindow, wait } = about;
  if (isCode(totp)) return { code: totp, window: null };
  const generator = generatorFor(totp);
  const windowNow = () => Math.floor(nowUs() / 1000 / windowMs);
  const codeOf = (window: number) => {
    return { code: generator.generate({ timestamp: window * windowMs }), window };
  };
  const current = windowNow();
  // A last window that lies ahead was written under another clock, and would take long to come.
  if (lastWindow !== current) return codeOf(current);
  await wait(Math.ceil((current + 1) * windowMs - nowUs() / 1000));
  // A timer may fire a little early.
  return codeOf(Math.max(windowNow(), current + 1));
}

function generatorFor(totp: string): TOTP {
  try {
    const secret = Secret.fromBase32(totp);
    return new TOTP({ secret, algorithm: 'SHA1', digits: 6, period: windowMs / 1000 });
  } catch {
    // Without the cause, which names a character of the secret.
    throw new AppError(
      'configuration',
      'EARSHOT_ACCOUNT_TOTP is neither six digits nor a shared secret in base32.',
      { advice: 'Copy the secret from the page that sets up the authenticator app.' },
    );
  }
}

export const sessionFileName = 'account-session.json';

/** True for one visible word, which a header can hold as it is. */
function isTokenText(text: unknown): text is string {
  return typeof text === 'string' && /^[\x21-\x7e]{1,20000}$/.test(text);
}

const storedTokenSchema = z.object({
  value: z.string().refine(isTokenText),
  obtainedAtUs: z.number().int(),
  endsAtUs: z.number().int(),
});

const sessionSchema = z.object({
  renewedAtUs: z.number().int(),
  /** Null when there was none, or the catalogue has refused it. */
  accessToken: storedTokenSchema.nullable(),
  refreshToken: storedTokenSchema.nullable(),
  /** The window of the one-time code that was used last (one-time-code.ts). */
  codeWindow: z.number().int().nullable(),
});

export type StoredToken = z.infer<typeof storedTokenSchema>;

export type Session = z.infer<typeof sessionSchema>;

/** Keeps the session of one account: those of another account, client or provider are of no use. */
export function createSessionFile(
  dataDir: string,
  { tokenUrl, clientId, username }: Record<'tokenUrl' | 'clientId' | 'username', string>,
) {
  const path = join(dataDir, sessionFileName);
  const owner = { tokenUrl, clientId, username };
  const fileSchema = z.object({
    owner: z.object({
      tokenUrl: z.literal(tokenUrl),
      clientId: z.literal(clientId),
      username: z.literal(username),
    }),
    session: sessionSchema,
  });
  return {
    /** Null when there is none that can be used: none at all, another's, damaged, open to others. */
    read: async (): Promise<Session | null> => {
      try {
        return fileSchema.parse(JSON.parse(readOwnerOnly(path) ?? '')).session;
      } catch {
        // A new login replaces whatever is there.
        return null;
      }
    },
    /** Replaces it in one step; on disk when it resolves. Rejects with the system's error. */
    write: (session: Session) => writeOwnerOnly(path, `${JSON.stringify({ owner, session })}\n`),
  };
}
