/** Makes a session last: refreshes it while that goes, and logs in anew when it does not. */
import type { Grant, IdentityProvider } from './identity-provider.ts';
import { oneTimeCode } from './one-time-code.ts';
import type { HeldToken, Session } from './session-file.ts';

const marginUs = 30_000_000;

/**
 * True when a token is good for 30 s more, or for half of a lifetime shorter than a minute. One that
 * seems to last longer than its whole lifetime was obtained under another clock, and is not believed.
 */
export function lasts(token: HeldToken | null | undefined, nowUs: number): token is HeldToken {
  if (!token) return false;
  const lifetimeUs = token.endsAtUs - token.obtainedAtUs;
  const leftUs = token.endsAtUs - nowUs;
  return leftUs >= Math.min(marginUs, lifetimeUs / 2) && leftUs <= lifetimeUs;
}

/** A session that has just been renewed. */
export type RenewedSession = Session & { accessToken: HeldToken };

export interface SessionRenewal {
  /**
   * A session with a new access token. Refreshes the one that is there, if it lasts and a new login
   * is not asked for. Rejects as the identity provider does.
   */
  renew(session: Session | null, options: { loginAnew: boolean }): Promise<RenewedSession>;
}

export function createSessionRenewal(options: {
  account: { username: string; password: string; totp: string | undefined };
  provider: IdentityProvider;
  nowUs: () => number;
  wait: (ms: number) => Promise<unknown>;
}): SessionRenewal {
  const { account, provider, nowUs, wait } = options;
  /** Also of a login that failed: its code may have been taken all the same. */
  let usedWindow: number | null = null;

  async function login(before: Session | null): Promise<RenewedSession> {
    const { username, password, totp } = account;
    const lastWindow = Math.max(usedWindow ?? 0, before?.codeWindow ?? 0);
    const code = totp === undefined ? null : await oneTimeCode(totp, { nowUs, lastWindow, wait });
    usedWindow = code?.window ?? null;
    const atUs = nowUs();
    const grant = await provider.login(username, password, code?.code ?? null);
    return { ...sessionOf(grant, atUs), codeWindow: usedWindow };
  }

  async function renew(before: Session | null, { loginAnew }: { loginAnew: boolean }) {
    const refreshToken = before?.refreshToken;
    const atUs = nowUs();
    if (loginAnew || !lasts(refreshToken, atUs)) return login(before);
    const grant = await provider.refresh(refreshToken.value);
    if (grant === null) return login(before);
    const session = sessionOf(grant, atUs);
    return {
      ...session,
      refreshToken: session.refreshToken ?? refreshToken,
      codeWindow: before?.codeWindow ?? null,
    };
  }

  return { renew };
}

/** Lifetimes count from before the request, so that a slow answer makes none longer. */
function sessionOf(grant: Grant, obtainedAtUs: number): Omit<RenewedSession, 'codeWindow'> {
  const held = (value: string, seconds: number) => ({
    value,
    obtainedAtUs,
    endsAtUs: obtainedAtUs + seconds * 1_000_000,
  });
  const { accessToken, accessSeconds, refreshToken, refreshSeconds } = grant;
  return {
    renewedAtUs: obtainedAtUs,
    accessToken: held(accessToken, accessSeconds),
    refreshToken: refreshToken === null ? null : held(refreshToken, refreshSeconds),
  };
}
