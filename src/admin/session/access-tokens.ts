/** The account's access token: one session, shared by all commands, renewed before it ends. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Account, PasswordAccount } from '../../domain/account.ts';
import type { TakeLock } from '../../domain/administration.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { createIdentityProvider } from './identity-provider.ts';
import { createSessionFile, type Session } from './session-file.ts';
import { createSessionRenewal, lasts } from './session-renewal.ts';
import { createTokenRefusals } from './token-refusals.ts';

export interface AccessTokens {
  /**
   * A token that is valid for some time yet. Rejects with `unauthorized` when the account cannot be
   * entered with what is configured, `unavailable` when the identity provider cannot be asked, and
   * `configuration` when what is configured is no identity provider, client or code.
   */
  get(): Promise<string>;
  /** The service has refused this token: it is not handed out again, and the next `get` finds another. */
  refused(token: string): Promise<void>;
}

export interface AccessTokensOptions {
  account: Account;
  /** Where the session is kept. A folder that cannot be written costs a login for each command. */
  dataDir: string;
  nowUs: () => number;
  fetch: typeof fetch;
  takeLock: TakeLock;
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

function createSessionTokens(
  account: PasswordAccount,
  { dataDir, nowUs, takeLock, wait = delay, ...options }: AccessTokensOptions,
): AccessTokens {
  const { fetch: send, answerTimeoutMs: timeoutMs } = options;
  const provider = createIdentityProvider({ ...account, fetch: send, timeoutMs });
  const renewal = createSessionRenewal({ account, provider, nowUs, wait });
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
    const loginAnew = refusals.demandLogin(session);
    const renewed = await renewal.renew(session, { loginAnew });
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
      const find = async () => (await look()) ?? (await locked(takeLock, renew));
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
      await locked(takeLock, () => forget(token)).catch(() => {});
    },
  };
}

/** Does what one program at a time may do. Rejects with `unavailable` when others keep it waiting. */
async function locked<Result>(takeLock: TakeLock, work: () => Promise<Result>): Promise<Result> {
  let release = () => {};
  try {
    release = await takeLock('account', { waitMs: lockWaitMs });
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
