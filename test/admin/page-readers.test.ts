/** Pages are read on a thread that does not delay the end of a command. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const module = join(import.meta.dirname, '../../src/admin/page-readers.ts');

/** Without a page, the thread ends after ten seconds. */
it('a command ends as soon as its last page is read', { timeout: 30_000 }, async () => {
  const script = `import { createReadPage } from ${JSON.stringify(module)};
    const page = Buffer.from(JSON.stringify({ value: Array(1_000).fill({ Name: 'n'.repeat(300) }) }));
    const options = { dateField: 'PublicationDate', sinceMs: 0, filter: null };
    await createReadPage()('readListing', page, options);
    process.stdout.write(String(Date.now()));`;
  const file = join(temporaryDirectory(), 'command.mjs');
  writeFileSync(file, script);
  const child = execFile(process.execPath, [file]);
  let out = '';
  child.stdout?.on('data', (text: string) => {
    out += text;
  });
  expect(await once(child, 'close')).toEqual([0, null]);
  expect(Date.now() - Number(out)).toBeLessThan(5_000);
});
