/** An account at the sandbox's identity provider, and token sources that log in to it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { PasswordAccount } from '../../src/admin/account.ts';
import {
  type AccessTokensOptions,
  createAccessTokens,
  sessionFileName,
} from '../../src/admin/session.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { ServiceSettingsInput } from '../../src/sandbox/settings.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** 2026-05-01T12:00:00Z, at the beginning of a one-time code's window. */
export const startMs = Date.UTC(2026, 4, 1, 12);

export const password = 'a long password, ü : %';

export type TestAccount = Awaited<ReturnType<typeof startAccount>>;

/** Starts a sandbox with a clock that only `advance` moves; closes it after the test. */
export async function startAccount(service: ServiceSettingsInput = {}) {
  const account = { username: 'me@example.org', password };
  const sandbox = await startSandbox({ now: () => startMs, account, service, count: 0 });
  onTestFinished(() => sandbox.close());
  const dataDir = temporaryDirectory();
  const nowUs = () => sandbox.clock.now() * 1000;
  const own: PasswordAccount = {
    kind: 'password',
    tokenUrl: sandbox.tokenUrl,
    clientId: 'cdse-public',
    ...account,
    totp: undefined,
  };
  const count = (grant: string) =>
    sandbox.requests().filter((request) => request.grantType === grant).length;
  return {
    sandbox,
    dataDir,
    account: own,
    /** Microseconds since 1970 on the sandbox's clock. */
    nowUs,
    advance: (seconds: number) => sandbox.clock.advance(seconds * 1000),
    /** A token source like that of a separate program; all share the data directory. */
    tokens: (changes: Partial<PasswordAccount> = {}, more: Partial<AccessTokensOptions> = {}) =>
      createAccessTokens({
        account: { ...own, ...changes },
        dataDir,
        nowUs,
        fetch,
        ...more,
      }),
    /** Number of token requests, by grant. */
    grants: () => ({ logins: count('password'), refreshes: count('refresh_token') }),
    /** True when the catalogue accepts the token. */
    accepts: async (token: string) => {
      const headers = { Authorization: `Bearer ${token}` };
      const url = `${sandbox.catalogueUrl}/odata/v1/Subscriptions/Info`;
      return (await fetch(url, { headers })).ok;
    },
  };
}

/** Path of the session file. */
export function fileOf({ dataDir }: Pick<TestAccount, 'dataDir'>): string {
  return join(dataDir, sessionFileName);
}

/** Content of the session file. */
export function savedBy(account: Pick<TestAccount, 'dataDir'>) {
  return JSON.parse(readFileSync(fileOf(account), 'utf8'));
}

/** The error of a call; throws when the call succeeds or fails with another type of error. */
export async function failureOf(call: Promise<unknown>): Promise<AppError> {
  const error: unknown = await call.catch((error) => error);
  if (error instanceof AppError) return error;
  throw new Error('Expected an AppError.', { cause: error });
}
