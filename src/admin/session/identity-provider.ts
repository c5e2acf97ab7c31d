/** The identity provider: logs in with a password, and renews a session (OAuth 2.0, Keycloak). */
import * as openid from 'openid-client';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { createBoundedFetch } from '../../http/bounded-fetch.ts';
import {
  foreignAnswer,
  type LoginContext,
  providerUnreachable,
  realmOf,
  refusalError,
  refuseForeignAnswer,
} from './login-refusal.ts';
import { isCode } from './one-time-code.ts';
import { isTokenText } from './session-file.ts';

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
    grant: (config: openid.Configuration) => Promise<Answer>,
  ): Promise<Answer> {
    const context: LoginContext = { tokenUrl, clientId, totpKind, secrets };
    const config = configurationFor(tokenUrl, clientId);
    config.timeout = timeoutMs / 1000;
    config[openid.customFetch] = async (url, { body = null, signal = null, ...init }) => {
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
      return await grant(config);
    } catch (error) {
      // Only our own words go on: the library's errors carry the answer, tokens included.
      if (error instanceof Error && isAppError(error.cause)) throw error.cause;
      if (error instanceof openid.ResponseBodyError) throw refusalError(error, context);
      if (error instanceof openid.ClientError) {
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
      const answer = await ask(secrets, (config) =>
        openid.genericGrantRequest(config, 'password', parameters),
      );
      return grantOf(answer, { tokenUrl });
    },
    refresh: async (token) => {
      const answer = await ask([token], (config) =>
        openid.refreshTokenGrant(config, token).catch(nullWhenOver),
      );
      return answer && grantOf(answer, { tokenUrl });
    },
  };
}

function configurationFor(tokenUrl: string, clientId: string): openid.Configuration {
  const server = { issuer: realmOf(tokenUrl), token_endpoint: tokenUrl };
  const config = new openid.Configuration(server, clientId, undefined, openid.None());
  // Passwords travel over HTTPS, or do not leave this computer.
  if (/^http:\/\/(localhost|127(\.\d{1,3}){3}|\[::1\])(:|\/|$)/.test(tokenUrl)) {
    openid.allowInsecureRequests(config);
  }
  return config;
}

function nullWhenOver(error: unknown): null {
  if (error instanceof openid.ResponseBodyError && error.error === 'invalid_grant') return null;
  throw error;
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
