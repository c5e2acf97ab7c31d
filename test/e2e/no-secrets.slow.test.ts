/** Secrets are never printed, logged, or written to files that others may read. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openAccountContext } from '../features/subscriptions/account-context.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';

const account = { username: 'me@example.org', password: `pw-${randomBytes(12).toString('hex')}` };
const totpSecret = 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';

const secretFiles = ['account-session.json', 'endpoint-credentials.json'];

/** Returns the strings in a JSON value under names of secrets. */
function secretsIn(value: unknown, path = ''): string[] {
  if (typeof value === 'string') return /(Token|password)\b/.test(path) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => secretsIn(inner, `${path}.${key}`));
}

function collectSecrets(dataDir: string, secrets: Set<string>): void {
  for (const name of secretFiles) {
    const path = join(dataDir, name);
    if (statSync(path, { throwIfNoEntry: false }) === undefined) continue;
    for (const secret of secretsIn(JSON.parse(readFileSync(path, 'utf8')))) secrets.add(secret);
  }
}

/** Returns the texts of all files below a folder that users other than the owner may read. */
function readableByOthers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => (statSync(path).mode & 0o077) !== 0)
    .map((path) => readFileSync(path, 'latin1'));
}

it('no secret leaves the files that only the owner may read', async () => {
  const context = await openAccountContext({
    sandbox: { account, service: { totpSecret }, count: 50, ratePerSecond: 50 },
  });
  const { folder, dataDir, sandbox } = context;
  const env: Record<string, string> = {
    ...context.env,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_ACCOUNT_TOTP: totpSecret,
  };
  const secrets = new Set([account.password, totpSecret]);
  const printed: string[] = [];
  const run = async (...argv: string[]) => {
    const { code, out, err } = await spawnCommand(argv, { env, cwd: folder }).ended;
    printed.push(out, err);
    collectSecrets(dataDir, secrets);
    return code;
  };
  const receiver = spawnCommand(['start'], {
    env: { ...env, EARSHOT_LOG_LEVEL: 'debug' },
    cwd: folder,
  });
  expect(await run('register', '--event', 'created', '--yes')).toBe(0);
  await expect.poll(() => sandbox.totals().delivered).toBeGreaterThan(0);
  expect(await run('doctor', '--json')).toBe(0);
  for (const argv of [
    ['list', '--json'],
    ['show', 'default'],
    ['history', '--json'],
  ]) {
    expect(await run('subscriptions', ...argv)).toBe(0);
  }
  expect(await run('maintain', '--json')).toBe(0);
  expect(await run('credentials', 'rotate', '--wait', '1')).toBe(0);
  // Failures print more details than successes.
  const unchecked = ['--filter', "foo eq 'bar'", '--skip-filter-check'];
  expect(await run('register', ...unchecked, '--yes')).toBe(1);
  sandbox.service.change({ accessTokenSeconds: 1 });
  sandbox.clock.advance(4_000_000);
  await run('maintain');
  sandbox.service.change({ unavailable: true, identityUnavailable: true });
  expect(await run('subscriptions', 'list')).toBe(1);
  env.EARSHOT_ACCOUNT_PASSWORD = `wrong-${account.password}`;
  env.EARSHOT_ACCESS_TOKEN = 'a-token-that-is-none';
  secrets.add(env.EARSHOT_ACCESS_TOKEN);
  sandbox.service.change({ unavailable: false, identityUnavailable: false });
  expect(await run('maintain')).toBe(1);

  await expect.poll(receiver.err).toContain('ready');
  // Two of the account, at least two of its session, two of the endpoint, and the token of a variable.
  expect(secrets.size).toBeGreaterThanOrEqual(7);
  const texts = [
    ...printed,
    receiver.out(),
    receiver.err(),
    JSON.stringify(context.lines),
    ...readableByOthers(folder),
  ];
  for (const secret of secrets) {
    const forms = [secret, Buffer.from(secret).toString('base64'), encodeURIComponent(secret)];
    expect(texts.filter((text) => forms.some((form) => text.includes(form)))).toEqual([]);
  }
}, 60_000);
