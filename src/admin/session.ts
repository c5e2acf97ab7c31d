/** The session of the account: one access token for all programs, renewed by a refresh or a login. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TOTP } from 'otpauth';
import { z } from 'zod';
import { readOwnerOnly, writeOwnerOnly } from '../core/host/files.ts';
import type { AcquireLock } from '../core/host/job.ts';
import { createBoundedFetch, networkFault } from '../core/http/bounded-fetch.ts';
import { hostOf, isLoopbackHost } from '../core/http/network-address.ts';
import { foreignText, hintOf } from '../core/http/service-error.ts';
import { AppError, type ErrorCode, isAppError } from '../core/terms/app-error.ts';
import { faultOf, nextStepOf } from '../core/terms/faults.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import type { AccessTokens, Account, PasswordAccount } from './account.ts';

export interface AccessTokensOptions {
  account: Account;
  /** Directory of the session file. If it is not writable, each program logs in. */
  dataDir: string;
  nowUs: () => number;
  fetch: typeof fetch;
  /** By default, acquires the locks of the data directory. */
  acquireLock?: AcquireLock;
  /** Waits; tests replace it. */
  wait?: (ms: number) => Promise<unknown>;
}

/** Opens no file and sends no request before the first `get`. No error contains a password, code or token. */
export function createAccessTokens({ account, ...options }: AccessTokensOptions): AccessTokens {
  if (account.kind === 'password') return createSessionTokens({ ...options, account });
  let isRefused = false;
  return {
    get: async () => {
      if (!isRefused) return account.accessToken;
      const message = 'EARSHOT_ACCESS_TOKEN is invalid, or has expired.';
      const advice = 'Set a new one, or set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
      throw new AppError('unauthorized', message, { advice });
    },
    refused: async (token) => {
      isRefused ||= token === account.accessToken;
    },
  };
}

type LoginOptions = AccessTokensOptions & { account: PasswordAccount };

function createSessionTokens(options: LoginOptions): AccessTokens {
  const { nowUs, dataDir, acquireLock = createAcquireLock(dataDir) } = options;
  const store = createSessionStore(options);
  const renew = createRenewal(options, store.save);
  let pending: Promise<string> | undefined;

  const findValid = () => validValue(store.load()?.accessToken, nowUs());
  const findOrRenew = async () => findValid() ?? renew(store.load());
  return {
    get: async () => {
      const valid = findValid();
      if (valid !== null) return valid;
      pending ??= locked(acquireLock, findOrRenew).finally(() => {
        pending = undefined;
      });
      return pending;
    },
    refused: (token) =>
      locked(acquireLock, async () => {
        const session = store.load();
        if (session?.accessToken?.value !== token) return;
        // Refreshes one time. If the catalogue refuses that token too, only a login can help.
        const refreshToken = session.isRefused ? null : session.refreshToken;
        await store.save({ ...session, accessToken: null, refreshToken, isRefused: true });
      }),
  };
}

/** Longer than a login that waits for its one-time code. */
const lockWaitMs = 60_000;

/** Runs work under the account lock. Rejects with `unavailable` if another program holds it too long. */
async function locked<Result>(acquireLock: AcquireLock, work: () => Promise<Result>) {
  const release = await acquireLock('account', { waitMs: lockWaitMs }).catch((cause: unknown) => {
    if (isAppError(cause, 'conflict')) throw cause.with({ code: 'unavailable', cause });
    // A directory without locks has no session file either, so nothing shared needs the lock.
    return () => {};
  });
  try {
    return await work();
  } finally {
    release();
  }
}

const marginUs = 30_000_000;

/**
 * Returns a token that stays valid for 30 s, or for half of a lifetime shorter than a minute; else null. Null if more
 * time is left than its whole lifetime: the clock has been set back since.
 */
function validValue(token: Session['accessToken'] | undefined, nowUs: number): string | null {
  const { value = null, fromUs = 0, lifetimeUs = 0 } = token ?? {};
  const leftUs = fromUs + lifetimeUs - nowUs;
  return leftUs >= Math.min(marginUs, lifetimeUs / 2) && leftUs <= lifetimeUs ? value : null;
}

export const sessionFileName = 'account-session.json';

/** A printable word, which is valid in a header. */
const tokenText = z.string().regex(/^[\x21-\x7e]{1,20000}$/);

const token = z.object({ value: tokenText, fromUs: z.number(), lifetimeUs: z.number() }).nullable();

const sessionSchema = z.object({
  /** Time of the last login, stored before its request. */
  loginAtUs: z.number(),
  accessToken: token,
  refreshToken: token,
  /** True if the catalogue has refused a token since the login. */
  isRefused: z.boolean(),
});

type Session = z.infer<typeof sessionSchema>;

/** Stores the session of one account in a file, and in memory if the file cannot be written. */
function createSessionStore({ dataDir, account }: LoginOptions) {
  const path = join(dataDir, sessionFileName);
  const owner = [account.tokenUrl, account.clientId, account.username].join(' ');
  const fileSchema = z.object({ owner: z.literal(owner), session: sessionSchema });
  let latest: Session | null = null;
  let isStored = true;
  return {
    /** Returns the latest session; ignores a file that is damaged, of another account, or readable by others. */
    load: (): Session | null => {
      try {
        if (isStored) latest = fileSchema.parse(JSON.parse(readOwnerOnly(path) ?? '')).session;
      } catch {
        // The next change replaces the file.
      }
      return latest;
    },
    save: async (session: Session) => {
      latest = session;
      isStored = false;
      const fault = await writeOwnerOnly(path, JSON.stringify({ owner, session })).catch(String);
      isStored = fault === undefined;
    },
  };
}

/** Pause of logins while the catalogue refuses the tokens: 30 of the account's 100 sessions an hour. */
const loginPauseUs = 120_000_000;

/** Time window of a one-time code. */
const windowUs = 30_000_000;

/** Returns a function that resolves with a new access token, and saves its session. */
function createRenewal(options: LoginOptions, save: (session: Session) => Promise<void>) {
  const { nowUs, wait = delay, account } = options;
  const { username, password, totp } = account;
  const send = createTokenRequest(options);

  async function request(grant: string, parameters: Record<string, string>, before: Session) {
    // Before the request, so that a slow answer does not extend the lifetimes.
    const fromUs = nowUs();
    const answer = await send(grant, parameters);
    const stored = (value: string | null, seconds: number) =>
      value === null ? null : { value, fromUs, lifetimeUs: seconds * 1_000_000 };
    const accessToken = stored(answer.access_token, answer.expires_in);
    const refreshToken = stored(answer.refresh_token, answer.refresh_expires_in);
    await save({ ...before, accessToken, refreshToken: refreshToken ?? before.refreshToken });
    return answer.access_token;
  }

  async function login(lastAtUs: number, isRefused: boolean): Promise<string> {
    const windowOf = (us: number) => Math.floor(us / windowUs);
    // A timer may fire slightly early.
    while (totp !== undefined && windowOf(nowUs()) === windowOf(lastAtUs)) {
      await wait(Math.ceil((windowUs - (nowUs() % windowUs)) / 1000));
    }
    const loginAtUs = nowUs();
    const code = totp === undefined ? {} : { totp: codeAt(totp, loginAtUs) };
    const attempt = { loginAtUs, accessToken: null, refreshToken: null, isRefused };
    // Saved before the request, so that no program uses the code again.
    await save(attempt);
    return request('password', { username, password, ...code }, attempt);
  }

  return async (before: Session | null): Promise<string> => {
    const refreshToken = validValue(before?.refreshToken, nowUs());
    let isEnded = false;
    if (before !== null && refreshToken !== null) {
      try {
        return await request('refresh_token', { refresh_token: refreshToken }, before);
      } catch (error) {
        if (!isAppError(error) || error.facts.isEnded !== true) throw error;
        isEnded = true;
      }
    }
    const { loginAtUs = -1, isRefused = false } = before ?? {};
    const pauseUs = loginAtUs + loginPauseUs - nowUs();
    const isPaused = isRefused && pauseUs > 0 && pauseUs <= loginPauseUs;
    // A login replaces a session that the provider has ended early, but not twice in a row.
    if (!isPaused || isEnded) return login(loginAtUs, isPaused);
    const message = 'The catalogue refuses the tokens of this account, even after a new login.';
    const advice = `Check EARSHOT_TOKEN_URL, EARSHOT_CLIENT_ID and EARSHOT_CATALOGUE_URL. The next login is possible in ${Math.ceil(pauseUs / 1e6)} seconds.`;
    throw new AppError('unauthorized', message, { advice, facts: { retryAfterMs: pauseUs / 1e3 } });
  };
}

/** Returns the code of a moment; a configured code is returned unchanged. */
function codeAt(totp: string, atUs: number): string {
  if (/^\d{6}$/.test(totp)) return totp;
  try {
    return new TOTP({ secret: totp, period: windowUs / 1e6 }).generate({ timestamp: atUs / 1000 });
  } catch {
    // Without the cause, which contains a character of the secret.
    const message = 'EARSHOT_ACCOUNT_TOTP is neither six digits nor a shared secret in base32.';
    const advice = 'Copy the secret from the setup page of the authenticator app.';
    throw new AppError('configuration', message, { advice });
  }
}

/** A missing, unlimited (0) or excessive lifetime gets the default. */
const lifetime = z.coerce.number().positive().max(2_592_000);

const grantSchema = z.object({
  access_token: tokenText,
  token_type: z.string().regex(/^bearer$/i),
  expires_in: lifetime.catch(60),
  refresh_token: tokenText.nullable().catch(null),
  refresh_expires_in: lifetime.catch(3_600),
});

const requestTimeoutMs = 30_000;

/** Returns a function that sends a grant to the token endpoint (OAuth 2.0, Keycloak). */
function createTokenRequest({ account, fetch }: LoginOptions) {
  const { tokenUrl, clientId } = account;
  const realm = tokenUrl.replace('/protocol/openid-connect/token', '');
  const url = new URL(tokenUrl);
  // Passwords are sent over HTTPS, or within this machine.
  const isPrivate = url.protocol === 'https:' || isLoopbackHost(hostOf(url));
  const boundedFetch = createBoundedFetch(fetch);
  return async (grant: string, parameters: Record<string, string>) => {
    const body = new URLSearchParams({ grant_type: grant, client_id: clientId, ...parameters });
    const signal = AbortSignal.timeout(requestTimeoutMs);
    let [status, text] = ['', ''];
    try {
      if (!isPrivate) throw new TypeError('HTTPS is required.');
      const answer = await boundedFetch(tokenUrl, { method: 'POST', body, signal });
      status = String(answer.status);
      if (answer.ok) return grantSchema.parse(await answer.json());
      text = hintOf(await answer.text());
    } catch (error) {
      // The error of the schema contains the answer including tokens.
      status ||= isPrivate ? networkFault(error) : 'no request';
    }
    const bounds = { secrets: Object.values(parameters), charactersMax: 500 };
    throw refusalOf({ host: url.host, realm, status, text: foreignText(text, bounds) });
  };
}

type Cause = readonly [pattern: RegExp, code: ErrorCode, fault: string];

/** The first pattern that matches "STATUS TEXT" applies; the text is JSON with `error` in the form of OAuth. */
const causes: readonly Cause[] = [
  [
    /\bsessions?\b.*\b(many|limit|exceeded|max\w*)\b|\b(many|max\w*)\b.*\bsessions?\b/i,
    'unavailable',
    'login sessions',
  ],
  [/^([a-z]|429|5\d\d|403 (?!.*"error"))/, 'unavailable', 'login unavailable'],
  [
    /^([23]|404|\d+ (?!.*"error"))|invalid_(client|request|scope)|unauthorized_client|unsupported_gr/,
    'configuration',
    'login client',
  ],
  [
    /\b(disabled|locked|blocked|suspended|set up|required action|activat|verif|confirm)/i,
    'unauthorized',
    'login account',
  ],
  [/./, 'unauthorized', 'login refused'],
];

/** Returns the error for a request without a token. Its advice quotes the provider's text. */
function refusalOf({ host, realm, status, text }: Record<string, string>): AppError {
  const isCause = ([pattern]: Cause) => pattern.test(`${status} ${text}`);
  const [, code, name] = causes.find(isCause) ?? [/./, 'unauthorized', 'login refused'];
  const fault = faultOf(name);
  const message = `The identity provider (${host}) gave no token: ${fault.clause} (${status}).`;
  const page = / (sessions|account)$/.test(name) ? ` Account page: ${realm}/account` : '';
  const response = text === '' ? '' : ` Response: ${text}`;
  const facts = { fault: fault.code, isEnded: text?.includes('invalid_grant') };
  return new AppError(code, message, { advice: nextStepOf(fault) + page + response, facts });
}
