/** The recipes for alerts by e-mail and chat, as the command of `earshot alerts --test`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startServer } from '../core/http/answering-server.ts';
import { nowUs, runCommand } from '../helpers/fake-io.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';

const python = '/usr/bin/python3';
const hasSmtp = installed('/usr/lib/python3/dist-packages/aiosmtpd/__init__.py');
const programs = join(import.meta.dirname, '../../examples/alerts');
const text = 'earshot: test message\nSent by `earshot alerts --test`.';
const id = `alert_0_${nowUs}.20260502120000000000`;

/** Sends the test alert through a command. */
async function sendTest(command: string, more: Record<string, string> = {}) {
  const EARSHOT_ALERT_COMMAND = `${python} ${programs}/${command}`;
  const env = { PATH: '/usr/bin:/bin', EARSHOT_ALERT_COMMAND, ...more };
  const { code, err } = await runCommand('alerts --test', { env });
  return { code, err };
}
const accepted = { code: 0, err: 'EARSHOT_ALERT_COMMAND accepted the test alert.\n' };
const refused = (reason: RegExp) => ({ code: 1, err: expect.stringMatching(reason) });

async function startSmtp(mode: 'plain' | 'starttls' | 'smtps') {
  const folder = temporaryDirectory();
  const { caPem, files } = await writeKeyPair(folder);
  const [login, ca] = [join(folder, 'login'), join(folder, 'ca.pem')];
  writeFileSync(login, 'earshot\na password\n');
  writeFileSync(ca, caPem);
  const script = join(import.meta.dirname, 'smtp-server.py');
  const server = spawn(python, [script, mode, files.cert, files.key, 'earshot', 'a password']);
  onTestFinished(() => void server.kill('SIGKILL'));
  const printed = printedBy(server.stdout);
  await once(server.stdout, 'data');
  const [port, ...addresses] = [
    Number(printed()),
    '--from',
    'earshot@example.org',
    '--to',
    'ops@example.org',
  ];
  const mail = (host: string) =>
    [
      'mail.py --server',
      `${mode === 'smtps' ? mode : 'smtp'}://${host}:${port}`,
      ...addresses,
    ].join(' ');
  const messages = () =>
    printed()
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => JSON.parse(line));
  return { login, ca, mail, messages };
}

describe.skipIf(!hasSmtp)('alerts by e-mail (needs python3-aiosmtpd)', () => {
  it.each(['starttls', 'smtps'] as const)('are sent with %s and a login', async (mode) => {
    const { login, ca, mail, messages } = await startSmtp(mode);
    const command = `${mail('localhost')} --login ${login}`;
    expect(await sendTest(command)).toEqual(
      refused(/not accept the message: .*CERTIFICATE_VERIFY/),
    );
    const trusting = { SSL_CERT_FILE: ca };
    expect(await sendTest(command, trusting)).toEqual(accepted);
    expect(await sendTest(command, trusting)).toEqual(accepted);
    writeFileSync(login, 'earshot\nother\n');
    expect(await sendTest(command, trusting)).toEqual(refused(/\(535, .*credentials/));
    const [From, To] = ['earshot@example.org', 'ops@example.org'];
    const content = { Subject: 'earshot: test message', text: `${text}\n`, rcpt: [To] };
    const sent = { From, To, 'Message-ID': `<${id}@example.org>`, ...content };
    expect(messages()).toMatchObject([sent, sent]);
  });

  it('are sent without TLS only to a server on this machine', async () => {
    const { mail, messages } = await startSmtp('plain');
    expect(await sendTest(mail('127.0.0.1'))).toEqual(accepted);
    // The same address, in a form that is not recognized.
    expect(await sendTest(mail('127.1'))).toEqual(refused(/STARTTLS extension not supported/));
    expect(messages()).toMatchObject([{ text: `${text}\n` }]);
  });
});

describe.skipIf(!installed(python))('alerts by chat (needs python3)', () => {
  async function startChat(...answers: Parameters<typeof startServer>[0] & unknown[]) {
    const { url, requests } = await startServer(answers);
    const file = join(temporaryDirectory(), 'chat-url');
    const write = (content: string) => writeFileSync(file, content);
    return { url, requests, chat: `chat.py --url ${file}`, write };
  }

  it('are posted as text to a webhook, whose URL is never printed', async () => {
    const redirect = { status: 302, headers: { Location: '/' } };
    const { url, requests, chat, write } = await startChat({}, redirect, 'cut');
    write(`${url}/hooks/a-secret-part?key=1\n`);
    expect(await sendTest(chat)).toEqual(accepted);
    expect(requests).toMatchObject([{ method: 'POST', path: '/hooks/a-secret-part?key=1' }]);
    expect(JSON.parse(requests[0]?.body ?? '')).toEqual({ text });
    const reasons = [
      /HTTP Error 302/,
      /not accept the message: Remote end closed/,
      /has no valid URL/,
    ];
    for (const reason of reasons) {
      if (reason === reasons[2]) write('hooks/a-secret-part');
      const failed = await sendTest(chat);
      expect(failed).toEqual(refused(reason));
      expect(failed.err).not.toContain('secret');
    }
  });

  it('are sent to a room of Matrix, with an id by which it drops repetitions', async () => {
    const { url, requests, chat, write } = await startChat({});
    write(`${url}/\na-token\n`);
    expect(await sendTest(`${chat} --matrix !room:example.org`)).toEqual(accepted);
    const [{ method, path, headers, body } = expect.fail()] = requests;
    const room = '/_matrix/client/v3/rooms/%21room%3Aexample.org/send/m.room.message/';
    expect([method, path]).toEqual(['PUT', `${room}${id}`]);
    expect(headers.authorization).toBe('Bearer a-token');
    expect(JSON.parse(body)).toEqual({ msgtype: 'm.text', body: text });
  });
});
