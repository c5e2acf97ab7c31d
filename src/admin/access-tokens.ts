/** The access token of the account: one session, shared by all commands and renewed before it expires. */
import { setTimeout as delay } from 'node:timers/promises';
import type { AccessTokens, Account, AcquireLock, PasswordAccount } from '../domain/account.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import {
  createIdentityProvider,
  createSessionFile,
  type Grant,
  oneTimeCode,
  type Session,
  type StoredToken,
} from './identity-provider.ts';

export interface AccessTokensOptions {
  account: Account;
  /** Directory of the session file. If it is not writable, each command logs in. */
  dataDir: string;
  nowUs: () => number;
  fetch: typeof fetch;
  acquireLock: AcquireLock;
  /** Waits; tests replace it. */
  wait?: (ms: number) => Promise<unknown>;
  /** Timeout of a request to the identity provider. */
  answerTimeoutMs?: number;
}

const lockWaitMs = 30_000;

/** Opens no file and sends no request before the first `get`. */
export function createAccessTokens(options: AccessTokensOptions): AccessTokens {
  const { account } = options;
  return account.kind === 'token'
    ? createGivenToken(account.accessToken)
    : createSessionTokens(account, options);
}

function createGivenToken(accessToken: string): AccessTokens {
  let isRefused = false;
  return {
    get: async () => {
      if (!isRefused) return accessToken;
      throw new AppError(
        'unauthorized',
        'EARSHOT_ACCESS_TOKEN is invalid or expired: access tokens expire within minutes.',
        {
          advice:
            'Set a new access token, or set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.',
        },
      );
    },
    refused: async (token) => {
      isRefused ||= token === accessToken;
    },
  };
}

function createSessionTokens(account: PasswordAccount, options: AccessTokensOptions): AccessTokens {
  const { dataDir, nowUs, acquireLock } = options;
  const renewSession = createSessionRenewal(account, options);
  const refusals = createTokenRefusals(nowUs);
  const file = createSessionFile(dataDir, account);
  /** The latest known session; not on disk if writing it failed. */
  let session: Session | null = null;
  let pending: Promise<string> | undefined;

  const usable = () => {
    const token = session?.accessToken;
    return isUsable(token, nowUs()) ? token.value : null;
  };

  async function readSaved(): Promise<string | null> {
    const saved = await file.read();
    if (saved !== null && saved.renewedAtUs > (session?.renewedAtUs ?? -1)) session = saved;
    return usable();
  }

  async function renew(): Promise<string> {
    const renewedByAnother = await readSaved();
    if (renewedByAnother !== null) return renewedByAnother;
    const renewed = await renewSession(session, refusals.needsLogin(session));
    session = renewed;
    // The session is used even if it cannot be saved.
    await file.write(renewed).catch(() => {});
    return renewed.accessToken.value;
  }

  async function discard(token: string): Promise<void> {
    const saved = await file.read();
    if (saved?.accessToken?.value === token) await file.write({ ...saved, accessToken: null });
  }

  return {
    get: async () => {
      const known = usable();
      if (known !== null) return known;
      const find = async () => (await readSaved()) ?? (await locked(acquireLock, renew));
      pending ??= find().finally(() => {
        pending = undefined;
      });
      return pending;
    },
    refused: async (token) => {
      const current = session?.accessToken;
      if (session === null || current?.value !== token) return;
      refusals.note(current);
      session = { ...session, accessToken: null };
      // If the file cannot be changed, other processes will also be refused.
      await locked(acquireLock, () => discard(token)).catch(() => {});
    },
  };
}

/** Does work under the account lock. Rejects with `unavailable` when the lock stays held by another. */
async function locked<Result>(
  acquireLock: AcquireLock,
  work: () => Promise<Result>,
): Promise<Result> {
  let release = () => {};
  try {
    release = await acquireLock('account', { waitMs: lockWaitMs });
  } catch (cause) {
    if (isAppError(cause, 'conflict')) throw cause.with({ code: 'unavailable', cause });
    // A directory that cannot hold a lock cannot hold a session either: nothing shared needs the lock.
  }
  try {
    return await work();
  } finally {
    release();
  }
}

const marginUs = 30_000_000;

/**
 * True when a token stays valid for 30 s, or for half of a lifetime shorter than a minute. False when
 * more time is left than its whole lifetime: the clock has been set back since.
 */
function isUsable(token: StoredToken | null | undefined, nowUs: number): token is StoredToken {
  if (!token) return false;
  const lifetimeUs = token.endsAtUs - token.obtainedAtUs;
  const leftUs = token.endsAtUs - nowUs;
  return leftUs >= Math.min(marginUs, lifetimeUs / 2) && leftUs <= lifetimeUs;
}

/** A session that has just been renewed. */
type RenewedSession = Session & { accessToken: StoredToken };

/**
 * Creates sessions with a new access token. Refreshes the session before, if its refresh token is usable
 * and no new login is needed. Rejects as the identity provider does.
 */
function createSessionRenewal(
  account: PasswordAccount,
  { fetch: send, nowUs, wait = delay, answerTimeoutMs: timeoutMs }: AccessTokensOptions,
): (before: Session | null, needsLogin: boolean) => Promise<RenewedSession> {
  const provider = createIdentityProvider({ ...account, fetch: send, timeoutMs });
  /** Also set after a failed login, which may have consumed its code. */
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

  return async (before, needsLogin) => {
    const refreshToken = before?.refreshToken;
    const atUs = nowUs();
    if (needsLogin || !isUsable(refreshToken, atUs)) return login(before);
    const grant = await provider.refresh(refreshToken.value);
    if (grant === null) return login(before);
    const session = sessionOf(grant, atUs);
    return {
      ...session,
      refreshToken: session.refreshToken ?? refreshToken,
      codeWindow: before?.codeWindow ?? null,
    };
  };
}

/** Lifetimes start before the request, so that a slow answer does not extend them. */
function sessionOf(grant: Grant, obtainedAtUs: number): Omit<RenewedSession, 'codeWindow'> {
  const stored = (value: string, seconds: number) => ({
    value,
    obtainedAtUs,
    endsAtUs: obtainedAtUs + seconds * 1_000_000,
  });
  const { accessToken, accessSeconds, refreshToken, refreshSeconds } = grant;
  return {
    renewedAtUs: obtainedAtUs,
    accessToken: stored(accessToken, accessSeconds),
    refreshToken: refreshToken === null ? null : stored(refreshToken, refreshSeconds),
  };
}

/** A token that is refused within this time was never valid. */
const freshUs = 30_000_000;

/** Pause of logins after two such tokens in a row, doubled by each further one: a login uses one of 100 sessions. */
const loginPauseUs = { min: 30_000_000, max: 600_000_000 };

const inARowMax = 2;

function createTokenRefusals(nowUs: () => number) {
  let inARow = 0;
  let lastAtUs = 0;
  return {
    note: ({ obtainedAtUs }: StoredToken) => {
      lastAtUs = nowUs();
      inARow = lastAtUs - obtainedAtUs < freshUs ? inARow + 1 : 0;
    },
    /**
     * True when refreshing `session` would not help, because a new token from it was refused. Throws
     * `unauthorized` when a new login would not help either.
     */
    needsLogin: (session: Session | null): boolean => {
      // The last token was not refused but expired.
      if (session?.accessToken) inARow = 0;
      const pauseUs = Math.min(loginPauseUs.max, loginPauseUs.min * 2 ** (inARow - inARowMax));
      const sinceUs = Math.abs(nowUs() - lastAtUs);
      if (inARow >= inARowMax && sinceUs < pauseUs) throw refusedTokens(pauseUs - sinceUs);
      return inARow > 0;
    },
  };
}

/** Fact `retryAfterMs`: time to the next login. */
function refusedTokens(leftUs: number): AppError {
  return new AppError(
    'unauthorized',
    'The catalogue refuses the tokens of this account, even after a new login.',
    {
      advice: `Check that EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID belong to EARSHOT_CATALOGUE_URL, and that the account is active. The next login is attempted in ${Math.ceil(leftUs / 1e6)} seconds.`,
      facts: { retryAfterMs: leftUs / 1_000 },
    },
  );
}
