/** The example of a feature in `examples/feature`, which CONTRIBUTING.md shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { app } from '../../src/app.ts';
import type { ConsoleParts } from '../../src/core/api/listener-slot.ts';
import type { Feature } from '../../src/core/feature.ts';
import { expectEnd, runCommand } from '../helpers/fake-io.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');
const file = join(root, 'examples/feature/index.ts');

it('has a command, a table and a route, with one line in the list of features', async () => {
  const { marks }: { marks: Feature } = await import(file);
  const dataDir = temporaryDirectory();
  await (await openStore({ dataDir })).close();
  const features = [...app, marks];
  const run = (words: string) =>
    expectEnd(runCommand(words, { env: { EARSHOT_DATA_DIR: dataDir }, features }), 0);
  await run('mark product-1');
  expect(JSON.parse((await run('mark product-2')).out)).toEqual(['product-1', 'product-2']);
  const own = { marks: { list: async () => ['product-1'] } } as unknown as ConsoleParts;
  const [served] = (await marks.listener?.())?.routes?.(own) ?? [];
  const url = new URL('http://localhost/api/marks');
  const client = { headers: new Headers(), disconnect: () => undefined };
  const answer = await served?.route.respond(url, new AbortController().signal, client);
  expect(answer).toEqual({ body: { marks: ['product-1'] } });
});

it('is shown in CONTRIBUTING.md as it is', () => {
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  expect(page).toContain(readFileSync(file, 'utf8').trim());
});
