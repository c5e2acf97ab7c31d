/** `earshot sandbox`: wrong words and settings are refused before anything is sent. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { runCommand } from './fake-io.ts';

const password = 'hunter2-not-to-be-told';
const env = { EARSHOT_ENDPOINT_USERNAME: 'catalogue', EARSHOT_ENDPOINT_PASSWORD: password };
/** A port of the system's choice, so that a command that starts after all disturbs nobody. */
const control = ['--control', '127.0.0.1:0', '--products', '1'];

function writeFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-sandbox-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'file');
  writeFileSync(file, text);
  return file;
}

describe('the sandbox', () => {
  it.each([
    ['--rate 0', /number above 0/],
    ['--rate fast', /number above 0/],
    ['--modified-share 1.5', /number from 0 to 1/],
    ['--deleted-share x', /number from 0 to 1/],
    ['--faults all', /Allowed choices are none, realistic, demo/],
    ['--fault typo=0.5', /Known faults: .*duplicate/],
    ['--fault duplicate', /number from 0 to 1/],
    ['--fault duplicate=2', /number from 0 to 1/],
    ['--fault toString=0.5', /Known faults/],
    ['--seed x', /whole number/],
    ['--endpoint nonsense', /endpoint/i],
    ['--endpoint http://127.0.0.1:1/notifications', /https/],
    ['--endpoint https://earshot.example.org/notifications', /--allow-remote|allow/i],
    ['--trust /nonexistent/ca.pem', /--trust names \/nonexistent\/ca\.pem/],
    ['--control 8090', /host:port/],
    ['--control 0.0.0.0:0', /control port will not listen on 0\.0\.0\.0/],
    ['--rate 20000', /rate/],
  ])('%s exits 2 and says what would be right', async (line, message) => {
    const { code, out, err } = await runCommand(['sandbox', ...control, ...line.split(' ')], {
      env,
    });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
    expect(err).not.toContain('fault of the program');
    expect(err).not.toContain(password);
  });

  it.each([
    ['a file that is not there', () => '/nonexistent/records.jsonl'],
    ['a file without records', () => writeFile('\n')],
    ['a line that is no JSON', () => writeFile('nonsense\n')],
  ])('--records with %s exits 2 and names the file', async (_title, create) => {
    const file = create();
    const argv = ['sandbox', ...control, '--records', file];
    const { code, out, err } = await runCommand(argv, { env });
    expect(err).toContain(file);
    expect(err).not.toContain('fault of the program');
    expect({ code, out }).toEqual({ code: 2, out: '' });
  });

  it.each([[{}], [{ EARSHOT_ENDPOINT_USERNAME: 'catalogue' }]])(
    'with only %j set exits 2 and names the variables',
    async (some) => {
      const { code, err } = await runCommand(['sandbox', ...control], { env: { ...some } });
      expect(code).toBe(2);
      expect(err).toMatch(/EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD/);
    },
  );
});
