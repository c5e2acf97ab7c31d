import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { promises } from '../promises.ts';

it('the table of promises names the tests of .ci/run', () => {
  const page = readFileSync(join(import.meta.dirname, '../../CONTRIBUTING.md'), 'utf8');
  const listed = [...page.matchAll(/^\| .+ \| `(test\/\S+)` \| `\.ci\/run` \|$/gm)];
  expect(listed.map(([, test]) => test)).toEqual(promises);
});
