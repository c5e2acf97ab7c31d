/** The recipe for Airflow: its script alone, and as the command of a sink of a receiver that is killed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { collect, notification } from '../helpers/deliveries.ts';
import { freePort } from '../helpers/free-ports.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import {
  createClient,
  createReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';
import { startAirflow } from './airflow-server.ts';

const python = '/usr/bin/python3';
const folder = join(import.meta.dirname, '../../examples/airflow');

/** A document as a sink gets it. */
const documentOf = (id: string) => ({
  ...{ id, event: 'created', productId: `product-${id}`, productName: 'S2A.SAFE', position: 1 },
  value: { Id: `product-${id}`, S3Path: `/eodata/${id}` },
});
/** The document as the DAG gets it. */
const smallOf = (id: string) => {
  const { position: _, value, ...small } = documentOf(id);
  return { ...small, S3Path: value.S3Path };
};

const fiftyTimesFaster = `
import runpy, signal, sys
signal.alarm = lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds / 50)
sys.argv.pop(0)
runpy.run_path(sys.argv[0])`;

async function openAirflow() {
  const airflow = await startAirflow();
  const cwd = temporaryDirectory();
  const loginFile = join(cwd, 'login');
  writeFileSync(loginFile, `${airflow.login}\n`);
  const command = (
    flags: string[] = [],
    { url = airflow.url, dag = 'products', before = [] as string[] } = {},
  ) => [
    ...[python, ...before, join(folder, 'start_dag_run.py'), '--url', url, '--dag', dag],
    ...['--login', loginFile, '--token', join(cwd, 'token'), ...flags],
  ];
  /** Runs the script with documents of these ids. */
  const run = async (ids: readonly string[], ...more: Parameters<typeof command>) => {
    const [program = '', ...args] = command(...more);
    const child = spawn(program, args, { cwd, stdio: ['pipe', 'ignore', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const err = printedBy(child.stderr);
    child.stdin.end(ids.map((id) => `${JSON.stringify(documentOf(id))}\n`).join(''));
    const [code] = await once(child, 'close');
    return { code, err: err() };
  };
  return { ...airflow, cwd, loginFile, command, run };
}

const started = { code: 0, err: '' };

describe.skipIf(!installed(python))('the script for Airflow (needs python3)', () => {
  it('starts one run per document, one per batch, and each once', async () => {
    const { run, runs, counts, cwd } = await openAirflow();
    expect(await run(['n_1'])).toEqual(started);
    expect(await run(['n_2', 'n_3'])).toEqual(started);
    expect(await run(['n_1'])).toEqual(started);
    expect(await run(['n_3', 'n_2'])).toEqual(started);
    expect(await run(['n_2', 'n_4'], ['--record'])).toEqual(started);
    expect(counts).toEqual({ logins: 1, conflicts: 2 });
    const [first, batch, other] = [...runs];
    expect(first).toEqual(['earshot__n_1', [smallOf('n_1')]]);
    expect(batch).toEqual([
      expect.stringMatching(/^earshot__\w{64}$/),
      ['n_2', 'n_3'].map(smallOf),
    ]);
    const { value } = documentOf('n_4');
    expect(other?.[1]).toEqual([expect.anything(), { ...smallOf('n_4'), value }]);
    expect(statSync(join(cwd, 'token')).mode & 0o777).toBe(0o600);
  });

  it('logs in once when a token expires, also in several processes', async () => {
    const { run, runs, counts, expireTokens } = await openAirflow();
    for (const logins of [1, 2]) {
      const ids = ['a', 'b', 'c', 'd'].map((name) => `${name}${logins}`);
      expect(await Promise.all(ids.map((id) => run([id])))).toEqual(ids.map(() => started));
      expect(counts.logins).toBe(logins);
      expireTokens();
    }
    expect(runs.size).toBe(8);
  });

  it('refuses with a reason what a retry cannot fix', async () => {
    const { run, runs, counts, loginFile, setProxy } = await openAirflow();
    const refused = (reason: RegExp) => ({ code: 1, err: expect.stringMatching(reason) });
    expect(await run(['1'], [], { dag: 'other' })).toEqual(
      refused(/404 .*other.* was not found\n$/),
    );
    expect(await run(['1'], [], { dag: 'private' })).toEqual(refused(/403 .*private: Forbidden/));
    // A missing permission replaces no token.
    expect(await run(['1'], [], { dag: 'private' })).toEqual(refused(/403 .*private: Forbidden/));
    expect(counts.logins).toBe(1);
    expect(await run(['n'.repeat(300)])).toEqual(refused(/422 .*rejected by database/));
    expect(runs.size).toBe(0);
    setProxy(() => ({ body: '<html>Sign in</html>' }));
    expect(await run(['1'])).toEqual(refused(/answered 200 to a run/));
    setProxy(() => ({ status: 302, headers: { Location: '/login' } }));
    expect(await run(['1'])).toEqual(refused(/answered 302 to a run/));
    setProxy(() => null);
    writeFileSync(loginFile, 'earshot\nother\n');
    const token = ['--token', 'no-token-yet'];
    expect(await run(['1'], token)).toEqual(refused(/login with 401: check \S+login\.\n$/));
  });

  it('logs in only once if Airflow refuses the new token, and sends three requests at most', async () => {
    const { run, setProxy, counts } = await openAirflow();
    let requests = 0;
    for (const [status, logins, sum] of [
      [401, 1, 2],
      [403, 2, 5],
    ] as const) {
      setProxy((_, path) => {
        requests += 1;
        return path === '/auth/token' ? null : { status, body: { detail: 'Invalid JWT token' } };
      });
      expect(await run(['1'])).toMatchObject({ code: 1 });
      expect([counts.logins, requests]).toEqual([logins, sum]);
    }
  });

  it('requests a retry when its time has passed', async () => {
    const { run, setProxy } = await openAirflow();
    setProxy(() => 'hang');
    const late = { code: 75, err: 'Airflow did not answer in time.\n' };
    expect(await run(['1'], [], { before: ['-c', fiftyTimesFaster] })).toEqual(late);
  });

  it('requests a retry while Airflow is unavailable', async () => {
    const { run, setProxy } = await openAirflow();
    for (const answer of [{ status: 429 }, { status: 503 }, 'cut'] as const) {
      setProxy(() => answer);
      expect(await run(['1'])).toMatchObject({ code: 75 });
    }
    const url = `http://127.0.0.1:${await freePort()}`;
    const gone = await run(['1'], [], { url });
    expect(gone).toEqual({ code: 75, err: expect.stringMatching(/not answer: .*refused/) });
  });

  it('starts one run per product, while answers are lost and the receiver is killed', async () => {
    const { command, cwd, runs, counts, expireTokens, setProxy } = await openAirflow();
    const sinks = { airflow: { command: command(), concurrency: 4, from: 'start' } };
    writeFileSync(join(cwd, 'earshot.config.ts'), `export default ${JSON.stringify({ sinks })};\n`);
    const context = await createReceiverContext(cwd);
    const start = () => context.start({ EARSHOT_RECONCILE: 'off', EARSHOT_INDEX: 'off' });
    const push = async ({ port }: SpawnedReceiver, from: number, to: number) => {
      const send = createClient({ port, ca: context.ca });
      for (let number = from; number <= to; number += 1) {
        const body = JSON.stringify(notification(number));
        expect(await send('POST', '/notifications/all', body)).toMatchObject({ status: 200 });
      }
    };
    // Four runs exist, but their deliveries have no answer when the receiver is killed.
    setProxy((isNew) => (isNew && runs.size > 8 ? 'hang' : null));
    const first = await start();
    await push(first, 1, 24);
    await expect.poll(() => runs.size).toBe(12);
    await first.end('SIGKILL');
    setProxy((isNew) => (isNew && runs.size % 7 === 0 ? 'cut' : null));
    expireTokens();
    const second = await start();
    await push(second, 25, 32);
    await expect.poll(() => runs.size).toBe(32);
    await expect.poll(() => counts.conflicts).toBeGreaterThanOrEqual(4 + 3);
    const reader = openStoreReader(context.dataDir);
    const counted = () => reader.sinks.counts();
    await expect.poll(counted).toMatchObject([{ waiting: 0, dead: 0 }]);
    expect(counts.logins).toBe(2);
    const rows = await collect(reader.find({ order: 'oldest' }));
    await reader.close();
    expect(await second.end()).toEqual([0, null]);
    const ids = [...runs.values()].map(([document]) => document?.productId);
    expect(ids.toSorted()).toEqual(rows.map(({ productId }) => productId).toSorted());
  });

  it('has a DAG that Python compiles, with the name in the example', async () => {
    const file = join(folder, 'earshot_product.py');
    const args = ['-c', 'import sys; compile(open(sys.argv[1]).read(), "dag", "exec")', file];
    expect(await once(spawn(python, args, { stdio: 'inherit' }), 'close')).toEqual([0, null]);
    expect(readFileSync(file, 'utf8')).toMatch(/^def earshot_product\(\):$/m);
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toContain("'--dag', 'earshot_product'");
  });
});
