/** The identity provider's memory: logins with their sessions, and the tokens that come from them. */

import type { Random } from '../random.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import { createOneTimeCodes } from './one-time-codes.ts';
import type { ServiceKnobs } from './service-settings.ts';

/** The one user that the sandbox knows. */
export interface Account {
  readonly username: string;
  readonly password: string;
}

/** What a login or a refresh gives. */
export interface IssuedTokens {
  readonly accessToken: string;
  readonly accessSeconds: number;
  readonly refreshToken: string;
  /** What is left of the session. */
  readonly refreshSeconds: number;
  readonly sessionId: string;
}

/** Why there are no tokens. */
export type TokenRefusal = 'credentials' | 'not-set-up' | 'too-many-sessions' | 'refresh-token';

export interface IdentityProvider {
  /** Opens a session. A wrong password, and a code that is missing, wrong or used, are all `credentials`. */
  login(login: Account & { readonly code: string | null }): IssuedTokens | TokenRefusal;
  /** Issues another access token for a session that still lives. */
  refresh(refreshToken: string): IssuedTokens | TokenRefusal;
  /** True for an access token that was issued and has not expired. */
  accepts(accessToken: string): boolean;
}

export interface IdentityProviderOptions {
  readonly account: Account;
  readonly knobs: ServiceKnobs;
  readonly clock: SandboxClock;
  readonly random: Random;
}

interface Session {
  readonly id: string;
  readonly refreshToken: string;
  readonly endsMs: number;
}

const tokenDigits = 64;
// Whoever refreshes without end loses the oldest tokens, not the sandbox's memory.
const accessTokensMax = 10_000;

/** Creates a provider without sessions. Tokens are opaque, and live by the sandbox's clock. */
export function createIdentityProvider(options: IdentityProviderOptions): IdentityProvider {
  const { account, knobs, clock, random } = options;
  const codes = createOneTimeCodes(clock);
  /** By refresh token; which stays the same as long as the session lives. */
  const sessions = new Map<string, Session>();
  /** When each access token ends, ms since 1970. */
  const accessEndsMs = new Map<string, number>();

  const issue = ({ id, refreshToken, endsMs }: Session, nowMs: number): IssuedTokens => {
    const accessToken = random.hex(tokenDigits);
    const accessMs = Math.min(knobs.current().accessTokenSeconds * 1_000, endsMs - nowMs);
    accessEndsMs.set(accessToken, nowMs + accessMs);
    const [oldest] = accessEndsMs.keys();
    if (oldest !== undefined && accessEndsMs.size > accessTokensMax) accessEndsMs.delete(oldest);
    return {
      accessToken,
      accessSeconds: Math.floor(accessMs / 1_000),
      refreshToken,
      refreshSeconds: Math.floor((endsMs - nowMs) / 1_000),
      sessionId: id,
    };
  };

  return {
    login: ({ username, password, code }) => {
      const { totpSecret, accountActive, sessionsMax, refreshTokenSeconds } = knobs.current();
      const known = username === account.username && password === account.password;
      // The password first: a wrong one must not use up the code.
      if (!known || (totpSecret !== null && !codes.take(totpSecret, code))) return 'credentials';
      if (!accountActive) return 'not-set-up';
      const nowMs = clock.now();
      dropEnded(sessions, nowMs);
      if (sessions.size >= sessionsMax) return 'too-many-sessions';
      const endsMs = nowMs + refreshTokenSeconds * 1_000;
      const session = { id: random.uuid(), refreshToken: random.hex(tokenDigits), endsMs };
      sessions.set(session.refreshToken, session);
      return issue(session, nowMs);
    },
    refresh: (refreshToken) => {
      const nowMs = clock.now();
      dropEnded(sessions, nowMs);
      const session = sessions.get(refreshToken);
      return session === undefined ? 'refresh-token' : issue(session, nowMs);
    },
    accepts: (accessToken) => {
      const endsMs = accessEndsMs.get(accessToken);
      return endsMs !== undefined && clock.now() < endsMs;
    },
  };
}

function dropEnded(sessions: Map<string, Session>, nowMs: number): void {
  for (const { refreshToken, endsMs } of sessions.values()) {
    if (nowMs >= endsMs) sessions.delete(refreshToken);
  }
}
