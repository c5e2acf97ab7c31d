/** Client of the identity provider: password login and session refresh (OAuth 2.0, Keycloak). */

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

/** OpenID Connect client library, loaded with the first login. */
type Library = typeof openid;

const answerTimeoutMs = 20_000;

/** Maximum token lifetime; a longer one is reduced to this. */
const secondsMax = 30 * 86_400;

/** Tokens and lifetimes that the provider returns. */
export interface Grant {
  accessToken: string;
  accessSeconds: number;
  refreshToken: string | null;
  refreshSeconds: number;
}

export interface IdentityProvider {
  /** `code` null for an account without two-factor login. */
  login(username: string, password: string, code: string | null): Promise<Grant>;
  /** Null when the provider refuses the token, so that a new login is needed. */
  refresh(refreshToken: string): Promise<Grant | null>;
}

/**
 * Creates a public client of one token endpoint. Calls reject with `unauthorized`, `unavailable` or
 * `configuration` (login-refusal.ts). No error or cause contains a password, code or token.
 */
export function createIdentityProvider(options: {
  tokenUrl: string;
  clientId: string;
  /** Code or secret of the two-factor login; affects only messages. */
  totp: string | undefined;
  fetch: typeof fetch;
  timeoutMs?: number | undefined;
}): IdentityProvider {
  const { tokenUrl, clientId, totp, timeoutMs = answerTimeoutMs } = options;
  const totpKind = totp === undefined ? 'none' : isCode(totp) ? 'code' : 'secret';
  const boundedFetch = createBoundedFetch(options.fetch);

  /** Sends one request. `secrets` are removed from messages if the provider repeats them. */
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
      // With this header, the library would ignore the body.
      response.headers.delete('www-authenticate');
      return response;
    };
    try {
      return await grant(library, config);
    } catch (error) {
      // Replaces the library's errors, which contain the answer including tokens.
      if (error instanceof Error && isAppError(error.cause)) throw error.cause;
      if (error instanceof library.ResponseBodyError) throw refusalError(error, context);
      if (error instanceof library.ClientError) {
        throw foreignAnswer('without a valid token', context);
      }
      const name = error instanceof Error ? error.name : typeof error;
      throw new AppError('internal', `The request to the identity provider failed (${name}).`);
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
          const isExpired =
            error instanceof library.ResponseBodyError && error.error === 'invalid_grant';
          if (isExpired) return null;
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
  // Passwords are sent over HTTPS, or within this machine.
  if (/^http:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:|\/|$)/.test(tokenUrl)) {
    library.allowInsecureRequests(config);
  }
  return config;
}

/** Reads the answer, including the optional fields that Keycloak adds to OAuth. */
function grantOf(answer: openid.TokenEndpointResponse, context: { tokenUrl: string }): Grant {
  const { access_token: accessToken, refresh_token: refreshToken } = answer;
  // An invalid token would appear in the error of the request header.
  if (!isTokenText(accessToken)) {
    throw foreignAnswer('with a token that is not valid in a header', context);
  }
  return {
    accessToken,
    accessSeconds: secondsOf(answer.expires_in) ?? 60,
    refreshToken: isTokenText(refreshToken) ? refreshToken : null,
    refreshSeconds: secondsOf(answer.refresh_expires_in) ?? 3_600,
  };
}

/** Null when the lifetime is missing or unlimited (0). */
function secondsOf(value: unknown): number | null {
  const seconds = Number(value);
  return seconds > 0 ? Math.min(Math.ceil(seconds), secondsMax) : null;
}

/** Time window of a one-time code; each code is accepted once. */
const windowMs = 30_000;

/** True for a code of six digits; anything else is the shared secret. */
export function isCode(totp: string): boolean {
  return /^\d{6}$/.test(totp);
}

/**
 * Returns the code for a login. If the code of this window was already used (`lastWindow`), waits for the
 * next window, maximum 30 s. `window` is its number, counted from 1970; null for a configured code.
 * Rejects with `configuration` when the secret is not base32.
 */
export async function oneTimeCode(
  totp: string,
  options: {
    nowUs: () => number;
    lastWindow: number | null;
    wait: (ms: number) => Promise<unknown>;
  },
): Promise<{ code: string; window: number | null }> {
  const { nowUs, lastWindow, wait } = options;
  if (isCode(totp)) return { code: totp, window: null };
  const generator = generatorFor(totp);
  const windowNow = () => Math.floor(nowUs() / 1000 / windowMs);
  const codeOf = (window: number) => {
    return { code: generator.generate({ timestamp: window * windowMs }), window };
  };
  const current = windowNow();
  // A last window in the future is ignored: the clock has been set back since.
  if (lastWindow !== current) return codeOf(current);
  await wait(Math.ceil((current + 1) * windowMs - nowUs() / 1000));
  // A timer may fire slightly early.
  return codeOf(Math.max(windowNow(), current + 1));
}

function generatorFor(totp: string): TOTP {
  try {
    const secret = Secret.fromBase32(totp);
    return new TOTP({ secret, algorithm: 'SHA1', digits: 6, period: windowMs / 1000 });
  } catch {
    // Without the cause, which contains a character of the secret.
    throw new AppError(
      'configuration',
      'EARSHOT_ACCOUNT_TOTP is neither six digits nor a shared secret in base32.',
      { advice: 'Copy the secret from the setup page of the authenticator app.' },
    );
  }
}

export const sessionFileName = 'account-session.json';

/** True for one printable word, which is valid in a header. */
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
  /** Null when there was none, or the catalogue refused it. */
  accessToken: storedTokenSchema.nullable(),
  refreshToken: storedTokenSchema.nullable(),
  /** Window of the last used one-time code. */
  codeWindow: z.number().int().nullable(),
});

export type StoredToken = z.infer<typeof storedTokenSchema>;

export type Session = z.infer<typeof sessionSchema>;

/** Stores the session of one account; ignores those of another account, client or provider. */
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
    /** Null when there is no usable one: missing, of another account, damaged, or readable by others. */
    read: async (): Promise<Session | null> => {
      try {
        return fileSchema.parse(JSON.parse(readOwnerOnly(path) ?? '')).session;
      } catch {
        // A new login replaces the file.
        return null;
      }
    },
    /** Replaces it atomically; on disk when it resolves. Rejects with the system's error. */
    write: (session: Session) => writeOwnerOnly(path, `${JSON.stringify({ owner, session })}\n`),
  };
}
