/** Programs that push over HTTPS, as the catalogue's sender would: curl, and Java's own HTTP client. */
import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { generatedBodies } from '../helpers/generated-bodies.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { startTcpServer } from '../helpers/tcp-server.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openServed } from '../receiver/served-context.ts';

const run = promisify(execFile);
const canRun = (program: string) => spawnSync(program, ['--version']).status === 0;

/** Opens a receiver behind a port that counts connections, and writes notifications to files. */
async function openContext(count: number) {
  const { url, ca, store } = await openServed();
  const folder = temporaryDirectory();
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, ca);
  const files = generatedBodies(count).map((body, i) => {
    const file = join(folder, `${i}.json`);
    writeFileSync(file, body);
    return file;
  });
  const counter = await startForwarder(Number(new URL(url ?? '').port));
  const target = `https://localhost:${counter.port}/notifications/real-clients`;
  const bodies = async () => {
    const stored: string[] = [];
    for await (const row of store.find({ order: 'oldest' })) {
      const body = await store.body(row.position);
      stored.push(Buffer.from(body ?? []).toString());
    }
    return stored;
  };
  return { target, caFile, files, counter, bodies, sent: generatedBodies(count).map(String) };
}

/** Starts a server that forwards the bytes of its connections. */
const startForwarder = (to: number) =>
  startTcpServer((incoming) => {
    const outgoing = connect(to, '127.0.0.1').on('error', () => undefined);
    incoming.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing).pipe(incoming);
  });

const login = `${credentials.username}:${credentials.password}`;

describe.skipIf(!canRun('curl'))('curl (needs curl)', () => {
  const curl = async (caFile: string, words: string[]) =>
    (await run('curl', ['--silent', '--show-error', '--cacert', caFile, ...words])).stdout;

  it('pushes over one connection, with HTTP/2 on offer, and each body is stored as it was sent', async () => {
    const { target, caFile, files, counter, bodies, sent } = await openContext(3);
    const common = ['--http2', '--user', login, '--header', 'Content-Type: application/json'];
    const each = files.flatMap((file, i) => [
      ...(i === 0 ? [] : ['--next', '--silent', '--cacert', caFile, ...common]),
      ...['--data-binary', `@${file}`, '--write-out', ' %{http_version} %{http_code}\n', target],
    ]);
    const answers = await curl(caFile, [...common, ...each]);
    expect(answers).toBe('{"status":"stored"} 1.1 200\n'.repeat(3));
    expect(counter.connections()).toBe(1);
    expect(await bodies()).toEqual(sent);
  });

  it('pushes in chunks, or after 100 Continue, and probes; a wrong password is rejected', async () => {
    const { target, caFile, files, bodies, sent } = await openContext(2);
    const push = (file: string | undefined, header: string) =>
      curl(caFile, ['--user', login, '--header', header, '--data-binary', `@${file}`, target]);
    expect(await push(files[0], 'Transfer-Encoding: chunked')).toBe('{"status":"stored"}');
    expect(await push(files[1], 'Expect: 100-continue')).toBe('{"status":"stored"}');
    expect(await push(files[0], 'Expect: 100-continue')).toBe('{"status":"duplicate"}');
    const status = ['--output', '/dev/null', '--write-out', '%{http_code}', target];
    expect(await curl(caFile, ['--user', login, ...status])).toBe('200');
    expect(await curl(caFile, ['--user', login, '--head', ...status])).toBe('200');
    const wrong = ['--user', 'catalogue:wrong', '--data-binary', `@${files[0]}`];
    expect(await curl(caFile, [...wrong, ...status])).toBe('401');
    expect(await bodies()).toEqual(sent);
  });
});

describe.skipIf(!canRun('java'))('java.net.http.HttpClient (needs a JDK)', () => {
  const source = join(import.meta.dirname, 'PushSender.java');
  // Few threads and no second compiler halve the time of a start.
  const options = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xshare:auto'];

  it.each(['header', 'challenge'])(
    'pushes over one connection, with HTTP/2 on offer, its credentials by %s',
    async (way) => {
      const { target, caFile, files, counter, bodies, sent } = await openContext(5);
      const words = [caFile, target, credentials.username, credentials.password, way, ...files];
      const { stdout } = await run('java', [...options, source, ...words]);
      expect(stdout).toBe('HTTP_1_1 200 {"status":"stored"}\n'.repeat(5));
      expect(counter.connections()).toBe(1);
      expect(await bodies()).toEqual(sent);
    },
    60_000,
  );
});
