/** The decision if a receiver needs a public listener. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { needsEndpoint } from '../../src/admin/settings.ts';
import type { SubscriptionType } from '../../src/core/terms/subscription.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { environment } from '../core/config/environment.ts';
import { registration } from '../features/alerts/watch-context.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

interface Ways {
  /** Types of the registered subscriptions; no database by default. */
  registered?: readonly SubscriptionType[];
  /** Text of `earshot.config.ts`; no file by default. */
  file?: string;
  env?: Record<string, string>;
  dataDir?: string;
}

/** Returns true if a receiver with these subscriptions needs an endpoint. */
async function needs({ registered, file, env = {}, dataDir = temporaryDirectory() }: Ways) {
  const workingDir = temporaryDirectory();
  if (file !== undefined) writeFileSync(join(workingDir, 'earshot.config.ts'), file);
  if (registered !== undefined) {
    const { store } = await openSqliteStore({ dataDir });
    for (const [i, type] of registered.entries()) {
      await store.administration.commit({ save: registration({ name: `s${i}`, type }) });
    }
  }
  return needsEndpoint({ ...environment({ EARSHOT_DATA_DIR: dataDir, ...env }), workingDir });
}

const fileWith = (...types: SubscriptionType[]) =>
  `export default { subscriptions: { ${types
    .map((type, i) => `s${i}: { type: '${type}', filter: "Name eq 'a'" }`)
    .join(', ')} } };`;

const account = { EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: 'secret' };

const [pull, push] = [{ file: fileWith('pull') }, { file: fileWith('push') }];
const [endless, broken] = ['await new Promise(() => undefined);', 'export {'];

it.each<[string, Ways, boolean]>([
  ['without a database and a file', {}, true],
  ['with a push and a pull subscription', { registered: ['pull', 'push'] }, true],
  ['with push subscriptions in the file only', { ...push, env: account }, true],
  ['with a pull subscription that becomes push', { registered: ['pull'], ...push }, true],
  ['with a push subscription that becomes pull', { registered: ['push'], ...pull }, true],
  [
    'with an account and a variable of the listener, and nothing registered',
    { file: 'export default { sinks: {} };', env: { ...account, EARSHOT_TLS: 'off' } },
    true,
  ],
  [
    'with a subscription without a type',
    { file: 'export default { subscriptions: { a: {} } };', env: account },
    true,
  ],
  [
    'with pull subscriptions and a public URL',
    { registered: ['pull'], env: { EARSHOT_PUBLIC_URL: 'https://earshot.example.org' } },
    true,
  ],
  ['without an account and a registration, whatever the file does', { file: endless }, true],
  ['with a data directory that does not exist', { dataDir: '/nonexistent/earshot' }, true],
  ['with a pull subscription', { registered: ['pull'] }, false],
  ['with an account and a pull subscription in the file', { ...pull, env: account }, false],
  ['with an account, before the first registration', { env: account }, false],
  ['with a pull subscription and an invalid file', { registered: ['pull'], file: broken }, false],
])('a receiver needs an endpoint %s: %s', async (_title, ways, expected) => {
  expect(await needs(ways)).toBe(expected);
});

it('a file that is no database is left to the start, which reports it', async () => {
  const dataDir = temporaryDirectory();
  writeFileSync(join(dataDir, databaseFileName), 'no database', { mode: 0o600 });
  expect(await needs({ dataDir })).toBe(true);
});
