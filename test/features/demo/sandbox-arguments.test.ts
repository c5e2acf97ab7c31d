/** `earshot sandbox`: wrong arguments and settings are refused before anything is sent; the lines it prints at start. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { runCommand, startCommand } from '../../helpers/fake-io.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { clientOf, send, startEndpoint } from '../../sandbox/set-up.ts';

const password = 'hunter2-not-to-be-shown';
const env = { EARSHOT_ACCOUNT_PASSWORD: password };
/** Free ports, so that a command that starts by mistake does not conflict with others. */
const loopback = '127.0.0.1:0';
const ports = ['--control', loopback, '--inference', loopback];
const control = [...ports, '--service', loopback, '--products', '1'];

function writeFile(text: string): string {
  const file = join(temporaryDirectory(), 'file');
  writeFileSync(file, text);
  return file;
}

/** Replaces flags by others of the same name: no option is given twice. */
function replaced(flags: readonly string[], others: readonly string[]): string[] {
  const isOther = (word = '') => word.startsWith('--') && others.includes(word);
  return [...flags.filter((word, i) => !isOther(word) && !isOther(flags[i - 1])), ...others];
}

it.each([
  ['--rate 0', /number above 0/],
  ['--fault typo=0.5', /Known faults: .*duplicate/],
  ['--fault duplicate=2', /a rate from 0 to 1/],
  ['--trust /nonexistent/ca.pem', /--trust: \/nonexistent\/ca\.pem/],
  ['--trust /etc/passwd', /trustedCaPems.0: not a PEM certificate/],
  ['--control 8090', /host:port/],
  ['--control 0.0.0.0:0', /must not listen on 0\.0\.0\.0/],
  ['--service 0.0.0.0:0', /must not listen on 0\.0\.0\.0/],
  ['--rate 20000', /rate/],
  ['--content 0', /1 or more/],
  ['--content 100000001', /contentBytes/],
])('the sandbox %s exits 2 with a correction', async (line, message) => {
  const argv = ['sandbox', ...replaced(control, line.split(' '))];
  const { code, out, err } = await runCommand(argv, { env });
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toMatch(message);
  expect(err).not.toContain('fault of the program');
  expect(err).not.toContain(password);
});

const account = { EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: password };
const secret = { ...account, EARSHOT_ACCOUNT_TOTP: 'JBSWY3DPEHPK3PXP' };
const me = { username: 'me', password };

it.each<[string, Record<string, string>, Record<string, string>, number]>([
  ['is sandbox and sandbox', {}, { username: 'sandbox', password: 'sandbox' }, 200],
  ['is what the variables say', account, me, 200],
  ['needs a code with a shared secret', secret, me, 401],
  ['needs none with a single code', { ...account, EARSHOT_ACCOUNT_TOTP: '123456' }, me, 200],
])(
  'the account of the sandbox %s, and its lines for .env have no secret of the user',
  async (_title, variables, fields, status) => {
    const service = `127.0.0.1:${await freePort()}`;
    const running = startCommand(['sandbox', ...ports, '--service', service], { env: variables });
    onTestFinished(running.stop);
    const tokenUrl = `http://${service}/auth/realms/CDSE/protocol/openid-connect/token`;
    const login = { client_id: 'cdse-public', grant_type: 'password', ...fields };
    const answer = () => fetch(tokenUrl, { method: 'POST', body: new URLSearchParams(login) });
    expect((await vi.waitFor(answer, 5_000)).status).toBe(status);
    running.stop();
    const { code, err } = await running.ended;
    expect(code).toBe(0);
    expect(err).toContain('Waiting for a running subscription.');
    expect(err).not.toMatch(new RegExp(`${password}|JBSWY`));
    expect(err.split('\n').filter((line) => line.startsWith('EARSHOT_'))).toEqual([
      `EARSHOT_CATALOGUE_URL=http://${service}`,
      `EARSHOT_TOKEN_URL=${tokenUrl}`,
      `EARSHOT_ACCOUNT_USERNAME=${fields.username}`,
      ...(fields === me ? [] : ['EARSHOT_ACCOUNT_PASSWORD=sandbox']),
      expect.stringMatching(/^EARSHOT_INFERENCE_URL=http:\/\/127\.0\.0\.1:\d+$/),
      'EARSHOT_INFERENCE_API_KEY=sandbox-key',
      'EARSHOT_INFERENCE_MODEL=openai/gpt-oss-120b',
    ]);
  },
);

it('the sandbox reports the reason when a notification is lost, and exits with 1', async () => {
  const { url, trustedCaPems, requests } = await startEndpoint(() => 401);
  const [service, port] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const trust = ['--trust', writeFile(trustedCaPems[0])];
  const flags = ['--service', service, '--control', port];
  const running = startCommand(['sandbox', ...replaced(control, flags), ...trust], {});
  onTestFinished(running.stop);
  const { create } = clientOf(`http://${service}`, Date.now);
  await vi.waitFor(() => create({ NotificationEndpoint: url, FilterParam: '' }), 5_000);
  for (const attempt of [1, 2, 3]) {
    await expect.poll(() => requests.length).toBe(attempt);
    await send(`http://${port}/clock`, 'POST', { advanceMs: 25_000 });
  }
  const { code, err } = await running.ended;
  expect(err).toMatch(/lost .*4 attempts failed; last failure: the endpoint answered 401/);
  expect([code, err]).toEqual([1, expect.stringContaining('1 notification was lost without')]);
});
