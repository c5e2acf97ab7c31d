/** The account's access token: one session, shared by all commands, renewed before it ends. */
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
  /** Where the session is kept. A folder that cannot be written costs a login for each command. */
  dataDir: string;
  nowUs: () => number;
  fetch: typeof fetch;
  acquireLock: AcquireLock;
  /** How time is waited for, with a default for all but tests. */
  wait?: (ms: number) => Promise<unknown>;
  /** How long the identity provider may take for an answer. */
  answerTimeoutMs?: number;
}

const lockWaitMs = 30_000;

/** Opens nothing and asks nobody before the first `get`. */
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
        'EARSHOT_ACCESS_TOKEN is not valid, or no longer: such tokens end after minutes.',
        { advice: 'Get a new one, or set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.' },
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
  /** The latest session known here. It may have failed to get to the disk. */
  let session: Session | null = null;
  let finding: Promise<string> | undefined;

  const usable = () => {
    const token = session?.accessToken;
    return lasts(token, nowUs()) ? token.value : null;
  };

  async function look(): Promise<string | null> {
    const saved = await file.read();
    if (saved !== null && saved.renewedAtUs > (session?.renewedAtUs ?? -1)) session = saved;
    return usable();
  }

  async function renew(): Promise<string> {
    const renewedByAnother = await look();
    if (renewedByAnother !== null) return renewedByAnother;
    const renewed = await renewSession(session, refusals.demandLogin(session));
    session = renewed;
    // A session that cannot be kept is used all the same.
    await file.write(renewed).catch(() => {});
    return renewed.accessToken.value;
  }

  async function forget(token: string): Promise<void> {
    const saved = await file.read();
    if (saved?.accessToken?.value === token) await file.write({ ...saved, accessToken: null });
  }

  return {
    get: async () => {
      const known = usable();
      if (known !== null) return known;
      const find = async () => (await look()) ?? (await locked(acquireLock, renew));
      finding ??= find().finally(() => {
        finding = undefined;
      });
      return finding;
    },
    refused: async (token) => {
      const held = session?.accessToken;
      if (session === null || held?.value !== token) return;
      refusals.note(held);
      session = { ...session, accessToken: null };
      // Without the file another program finds out by itself.
      await locked(acquireLock, () => forget(token)).catch(() => {});
    },
  };
}

/** Does what one program at a time may do. Rejects with `unavailable` when others keep it waiting. */
async function locked<Result>(
  acquireLock: AcquireLock,
  work: () => Promise<Result>,
): Promise<Result> {
  let release = () => {};
  try {
    release = await acquireLock('account', { waitMs: lockWaitMs });
  } catch (cause) {
    if (isAppError(cause, 'conflict')) throw cause.with({ code: 'unavailable', cause });
    // A folder that holds no lock holds no session either: nothing is shared that must be guarded.
  }
  try {
    return await work();
  } finally {
    release();
  }
}

const marginUs = 30_000_000;

/**
 * True when a token is good for 30 s more, or for half of a lifetime shorter than a minute. One that
 * seems to last longer than its whole lifetime was obtained under another clock, and is not believed.
 */
function lasts(token: StoredToken | null | undefined, nowUs: number): token is StoredToken {
  if (!token) return false;
  const lifetimeUs = token.endsAtUs - token.obtainedAtUs;
  const leftUs = token.endsAtUs - nowUs;
  return leftUs >= Math.min(marginUs, lifetimeUs / 2) && leftUs <= lifetimeUs;
}

/** A session that has just been renewed. */
type RenewedSession = Session & { accessToken: StoredToken };

/**
 * Makes a session with a new access token. Refreshes the one that is there, if it lasts and a new
 * login is not asked for. Rejects as the identity provider does.
 */
function createSessionRenewal(
  account: PasswordAccount,
  { fetch: send, nowUs, wait = delay, answerTimeoutMs: timeoutMs }: AccessTokensOptions,
): (before: Session | null, loginAnew: boolean) => Promise<RenewedSession> {
  const provider = createIdentityProvider({ ...account, fetch: send, timeoutMs });
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

  return async (before, loginAnew) => {
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
  };
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

/** A token refused this soon was never good. */
const freshUs = 30_000_000;

/** After two such tokens in a row nobody logs in for a while: a login takes one of 100 sessions. */
const loginPauseUs = 600_000_000;

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
     * True when refreshing `session` would not help, since a token fresh from it was refused. Throws
     * `unauthorized` when a new login would not help either.
     */
    demandLogin: (session: Session | null): boolean => {
      // The last token was not refused, it has only ended.
      if (session?.accessToken) inARow = 0;
      if (inARow >= inARowMax && Math.abs(nowUs() - lastAtUs) < loginPauseUs) {
        throw new AppError(
          'unauthorized',
          'The catalogue does not accept the token that the identity provider gives out for this account, not after a new login either.',
          {
            advice:
              'Check that EARSHOT_TOKEN_URL and EARSHOT_CLIENT_ID belong to EARSHOT_CATALOGUE_URL, and that the account is active. The next login is tried in ten minutes.',
          },
        );
      }
      return inARow > 0;
    },
  };
}
