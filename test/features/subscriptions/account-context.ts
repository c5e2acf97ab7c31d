/** A catalogue account in the sandbox, a receiver over real TLS, and commands that use both. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { loadServed } from '../../../src/core/config/config.ts';
import { writeCredentialsFile } from '../../../src/core/config/endpoint-credentials.ts';
import { serve } from '../../../src/receiver/serve.ts';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../../src/sandbox/settings.ts';
import { type FakeIoOptions, runCommand, testIo, type Words } from '../../helpers/fake-io.ts';
import { writeKeyPair } from '../../helpers/key-pair.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

export const account = { username: 'me@example.org', password: 'the-password-of-the-account' };
export const endpointPair = { username: 'earshot-first', password: 'the-first-endpoint-password' };

export type AccountContext = Awaited<ReturnType<typeof openAccountContext>>;

/** Opens the context; everything is closed when the test has finished. */
export async function openAccountContext(options: { sandbox?: Partial<SandboxOptions> } = {}) {
  const folder = temporaryDirectory();
  const dataDir = join(folder, 'data');
  const { caPem, files } = await writeKeyPair(folder);
  const ca = join(folder, 'authority.pem');
  writeFileSync(ca, caPem);
  const sandbox = await startSandbox({
    account,
    now: Date.now,
    ratePerSecond: 50,
    count: 0,
    trustedCaPems: [caPem],
    ...options.sandbox,
  });
  onTestFinished(() => sandbox.close());
  const env: Record<string, string> = {
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_LISTEN: '127.0.0.1:0',
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_TLS_CERT: files.cert,
    EARSHOT_TLS_KEY: files.key,
    EARSHOT_PROBE_CA: ca,
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
  };
  const nowUs = () => Math.trunc(sandbox.clock.now()) * 1000;
  /** Runs a command in the folder, on the sandbox's clock. */
  const run = (argv: Words, more: Partial<FakeIoOptions> = {}) =>
    runCommand(argv, { env, nowUs, workingDir: folder, ...more });
  const created = await run('credentials create');
  if (created.code !== 0) throw new Error(created.err);
  await writeCredentialsFile(dataDir, [endpointPair]);
  const { log, lines } = recordingLog();
  const config = loadServed({ settings, env, readFile: () => '' }, true);
  const receiver = await serve(config, log, testIo({ nowUs }));
  onTestFinished(() => receiver.close());
  const publicUrl = (receiver.url ?? '').replace('127.0.0.1', 'localhost');
  env.EARSHOT_PUBLIC_URL = publicUrl;
  /** Advances the clock of sandbox, receiver and commands. */
  const passDays = (days: number) => sandbox.clock.advance(days * 86_400_000);
  return { folder, dataDir, env, sandbox, receiver, publicUrl, lines, run, passDays };
}

/** Returns the account's subscriptions as rows that are easy to compare. */
export function rows({ sandbox }: Pick<AccountContext, 'sandbox'>) {
  return sandbox.subscriptions().map(({ endpoint, status, filter }) => ({
    name: endpoint?.split('/').at(-1) ?? 'pull',
    status,
    filter,
  }));
}

/** Counts the creation requests that the catalogue received. */
export function creations({ sandbox }: Pick<AccountContext, 'sandbox'>): number {
  const isCreation = (one: { method: string; path: string }) =>
    one.method === 'POST' && one.path.includes('/odata/');
  return sandbox.requests().filter(isCreation).length;
}

/** Returns a push subscription that earshot does not manage. */
export function unmanaged(name: string, status: 'running' | 'paused' = 'running') {
  return {
    type: 'push' as const,
    status,
    events: ['created' as const],
    filter: "Collection/Name eq 'LANDSAT-8'",
    endpoint: `https://localhost:9/${name}`,
    username: 'u',
    password: 'p',
  };
}

/** Changes a subscription at the catalogue without earshot: PATCH, or DELETE when there is no body. */
export async function asPerson(
  { sandbox }: Pick<AccountContext, 'sandbox'>,
  id: string,
  change?: object,
): Promise<number> {
  const form = { grant_type: 'password', client_id: 'cdse-public', ...account };
  const login = await fetch(sandbox.tokenUrl, { method: 'POST', body: new URLSearchParams(form) });
  const { access_token: token } = (await login.json()) as { access_token: string };
  const answer = await fetch(`${sandbox.catalogueUrl}/odata/v1/Subscriptions(${id})`, {
    method: change === undefined ? 'DELETE' : 'PATCH',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(change === undefined ? {} : { body: JSON.stringify(change) }),
  });
  return answer.status;
}
