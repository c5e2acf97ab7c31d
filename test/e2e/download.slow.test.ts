/**
 * The example of downloads, as a command sink of a receiver, with the sandbox: faults and kills lose nothing, and few
 * bytes are downloaded twice.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { demoKeys, type ServiceSettingsInput } from '../../src/sandbox/settings.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { notification } from '../helpers/deliveries.ts';
import {
  createClient,
  createReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';
import { send, startTestSandbox, unknownId } from '../sandbox/set-up.ts';
import { canMount, mountSmallDisk } from './disk-small.ts';

const script = join(import.meta.dirname, '../../examples/download/download.py');
const python = '/usr/bin/python3';
const hasPython = installed(python);
const hasBoto = installed('/usr/lib/python3/dist-packages/boto3/__init__.py');

const size = 200_000;
/** Half a second for each product, in pieces of a twentieth of a second. */
const slowly = { downloadBytesPerSecond: 400_000 };
const pieceBytes = slowly.downloadBytesPerSecond / 20;
/** Size in which the program writes. */
const chunkBytes = 32_768;

type Way = 'http' | 's3';
type Product = Readonly<Record<'Id' | 'Name', string>> & {
  readonly Checksum: readonly { readonly Value: string }[];
};

/** Starts a sandbox, and writes the files of the logins. `folder` is that of the products. */
async function openDownloads(service: ServiceSettingsInput = {}, folder = temporaryDirectory()) {
  const test = await startTestSandbox({ contentBytes: size, service });
  const { sandbox } = test;
  const place = temporaryDirectory();
  const loginFile = join(place, 'login');
  const keys = join(place, 'keys');
  writeFileSync(loginFile, JSON.stringify({ username: 'sandbox', password: 'sandbox' }));
  const { access: aws_access_key_id, secret: aws_secret_access_key } = demoKeys;
  writeFileSync(keys, JSON.stringify({ aws_access_key_id, aws_secret_access_key }));
  const { catalogueUrl, tokenUrl } = sandbox;
  const services = ['--http-url', `${catalogueUrl}/odata/v1`, '--token-url', tokenUrl];
  const commandOf = (way: Way) => {
    const own = way === 'http' ? ['--http', loginFile] : ['--s3', keys];
    return [python, script, folder, ...own, ...services, '--s3-url', catalogueUrl];
  };
  const publish = async (count: number): Promise<Product[]> => {
    await sandbox.publishNow(count);
    const events = sandbox.events().slice(-count);
    const records = events.map(({ productId }) =>
      send(`${catalogueUrl}/odata/v1/Products(${productId})`),
    );
    return (await Promise.all(records)).map(({ json }) => json);
  };
  const filesOf = ({ Id, Name }: Product) => {
    const names = ['manifest.safe', 'measurement/data.dat', 'preview/quick-look.png'];
    const zip = join(folder, Id, `${Name}.zip`);
    return existsSync(zip) ? [zip] : names.map((name) => join(folder, Id, Name, name));
  };
  const isComplete = (product: Product) => {
    const files = filesOf(product);
    if (!files.every((file) => existsSync(file))) return false;
    const hash = createHash('md5');
    for (const file of files) hash.update(readFileSync(file));
    return hash.digest('hex') === product.Checksum[0]?.Value;
  };
  const parts = () =>
    readdirSync(folder, { recursive: true }).filter((name) => String(name).endsWith('.part'));
  const grants = () => sandbox.requests().flatMap(({ grantType = [] }) => grantType);
  return { ...test, folder, loginFile, commandOf, publish, filesOf, isComplete, parts, grants };
}

/** Starts a receiver with the example as its sink. Products are pushed with `Online: false`. */
async function openReceiver(way: Way, service: ServiceSettingsInput = {}) {
  const test = await openDownloads(service);
  const home = temporaryDirectory();
  const context = await createReceiverContext(home);
  const sink = { command: test.commandOf(way), from: 'start', concurrency: 4 };
  const config = `export default ${JSON.stringify({ sinks: { download: sink } })};\n`;
  writeFileSync(join(home, 'earshot.config.ts'), config);
  const start = () => context.start({ EARSHOT_RECONCILE: 'off', EARSHOT_INDEX: 'off' });
  let pushed = 0;
  const push = async (to: SpawnedReceiver, products: readonly Product[], event = 'created') => {
    const post = createClient({ port: to.port, ca: context.ca });
    for (const product of products) {
      pushed += 1;
      const { Id: ProductId, Name: ProductName } = product;
      const value = { ...product, Online: false };
      const fields = { SubscriptionEvent: event, ProductId, ProductName, value };
      const body = JSON.stringify(notification(pushed, fields));
      expect((await post('POST', '/notifications/all', body)).status).toBe(200);
    }
  };
  const untilComplete = (products: readonly Product[]) =>
    expect
      .poll(() => products.filter(test.isComplete).length, { timeout: 60_000 })
      .toBe(products.length);
  return { ...test, receiver: await start(), start, push, untilComplete };
}

/** Ids of the running programs with a text in their command line. */
function programsWith(text: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    const file = `/proc/${name}/cmdline`;
    try {
      return /^\d+$/.test(name) && readFileSync(file, 'utf8').includes(text) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

describe.skipIf(!hasPython)('as a sink over HTTP', () => {
  it('completes products after faults, continues a part, and keeps one login', async () => {
    const nextDownloads = { rateLimited: 1, offline: 1, connectionCut: 1, wrongByte: 1 };
    const test = await openReceiver('http', { nextDownloads });
    const { sandbox, receiver, publish, push, untilComplete } = test;
    const products = await publish(6);
    await push(receiver, products);
    await untilComplete(products);
    expect(sandbox.service.current().nextDownloads).not.toMatchObject({ wrongByte: 1 });
    // The product with a wrong byte was downloaded twice, the interrupted one was continued.
    expect(sandbox.downloads()).toMatchObject({ bytes: 7 * size, requests: 10 });
    // Tokens have expired for the catalogue, but not for the program.
    sandbox.clock.advance(601_000);
    const more = await publish(4);
    await push(receiver, more);
    await untilComplete(more);
    expect(test.grants().toSorted()).toEqual(['password', 'refresh_token']);
    const [first, second] = products;
    if (first === undefined || second === undefined) throw new Error('too few');
    writeFileSync(join(test.folder, first.Id, `${first.Name}.zip.part`), 'rest');
    await push(receiver, [first], 'deleted');
    await expect.poll(() => existsSync(join(test.folder, first.Id))).toBe(false);
    expect(test.isComplete(second)).toBe(true);
    // Complete products are not downloaded again.
    await push(receiver, [second], 'modified');
    await receiver.end();
    expect(test.parts()).toEqual([]);
    expect(sandbox.downloads()).toMatchObject({ bytes: 11 * size });
  });

  it('loses nothing when the receiver is killed, with and without the programs', async () => {
    const test = await openReceiver('http', {
      // Longer than the start of a receiver.
      ...{ downloadBytesPerSecond: 75_000, downloadsMax: 100 },
    });
    const { sandbox, receiver, publish, push, untilComplete, start } = test;
    const untilBusy = (bytes: number) =>
      expect
        .poll(() => sandbox.downloads(), { interval: 20 })
        .toMatchObject({ inFlight: 4, bytes: expect.toSatisfy((sent) => sent > bytes) });
    const products = await publish(8);
    await push(receiver, products);
    await untilBusy(size / 10);
    // Its programs continue; those of the next receiver wait for them.
    await receiver.end('SIGKILL');
    expect(programsWith(test.folder)).not.toEqual([]);
    const next = await start();
    sandbox.service.change(slowly);
    await untilComplete(products);
    expect(sandbox.downloads()).toMatchObject({ bytes: 8 * size, inFlightMax: 4 });

    const more = await publish(6);
    await push(next, more);
    await untilBusy(10 * size);
    await next.end('SIGKILL');
    for (const pid of programsWith(test.folder)) process.kill(pid, 'SIGKILL');
    expect(test.parts()).not.toEqual([]);
    const last = await start();
    await untilComplete(more);
    const { bytes, inFlightMax } = sandbox.downloads();
    expect(inFlightMax).toBe(4);
    // Only pieces that the sandbox had sent, but the programs had not written.
    expect(bytes - 14 * size).toBeLessThanOrEqual(4 * (chunkBytes + 2 * pieceBytes));
    await last.end();
    expect(test.grants()).toEqual(['password']);
    expect(test.parts()).toEqual([]);
  });
});

it.skipIf(!hasPython || !hasBoto)(
  'as a sink with the object store: completes products after faults, and removes them (needs python3-boto3)',
  async () => {
    const nextDownloads = { rateLimited: 1, offline: 1, connectionCut: 1, wrongByte: 1 };
    const test = await openReceiver('s3', { nextDownloads });
    const { sandbox, receiver, publish, push, untilComplete } = test;
    const products = await publish(4);
    await push(receiver, products);
    await untilComplete(products);
    const [first = expect.fail(), second = expect.fail()] = products;
    const { bytes } = sandbox.downloads();
    // Each fault is of the first object, a tenth of its product: one was downloaded twice, one continued.
    expect(bytes).toBe(4 * size + size / 10);
    await push(receiver, [second], 'modified');
    await push(receiver, [first], 'deleted');
    await expect.poll(() => existsSync(join(test.folder, first.Id))).toBe(false);
    await receiver.end();
    expect(products.filter(test.isComplete)).toHaveLength(3);
    expect([test.parts(), sandbox.downloads().bytes]).toEqual([[], bytes]);
  },
);

describe.skipIf(!hasPython)('the program', () => {
  type Test = Awaited<ReturnType<typeof openDownloads>>;

  const documentOf = ({ Id, Name, ...record }: Product, changes: object = {}) => ({
    ...{ event: 'created', productId: Id, productName: Name, value: { Id, Name, ...record } },
    ...changes,
  });
  /** Runs it, and resolves with the exit code and the error output. */
  const run = async (command: readonly string[], document: object) => {
    const [program = '', ...args] = command;
    const child = execFile(program, args, { env: bareEnvironment({}) }, () => undefined);
    child.stdin?.end(JSON.stringify(document));
    let stderr = '';
    child.stderr?.on('data', (text) => {
      stderr += text;
    });
    const [code] = await once(child, 'close');
    return [code, stderr.trim()];
  };

  it('exits with 1 for what will not work later, 75 otherwise, with one line', async () => {
    const test = await openDownloads();
    const [product = expect.fail()] = await test.publish(1);
    const command = test.commandOf('http');
    const { sandbox } = test;
    const offline = { ...documentOf(product).value, Online: false };
    const next = (fault: string) => () =>
      void sandbox.service.change({ nextDownloads: { [fault]: 1 } });
    for (const [changes, code, message, prepare] of [
      [{ productId: unknownId }, 1, /404: .*not found/],
      [{ value: null }, 1, /no record/],
      [{ productName: '../name' }, 1, /product name/],
      [{ productName: null }, 1, /product name/],
      [{ productId: '..' }, 1, /product id/],
      [{ productId: undefined }, 1, /invalid: KeyError\('productId'/],
      [{ value: 'text' }, 1, /invalid: AttributeError/],
      [{ value: { Checksum: ['text'] } }, 1, /invalid: AttributeError/],
      [{ value: { Checksum: [{ Algorithm: 'MD5' }] } }, 1, /invalid: KeyError\('Value'/],
      [{ value: { ContentLength: '5' } }, 1, /invalid: TypeError/],
      [{}, 1, /404: .*offline/, next('offline')],
      [{ value: offline }, 75, /404: .*offline/, next('offline')],
      [{}, 75, /429: .*Max session number 4 exceeded/, next('rateLimited')],
      [{}, 75, /answered 500/, next('serverError')],
      [{}, 75, /after 100000 of 200000 bytes/, next('connectionCut')],
      [{}, 1, /checksum/, next('wrongByte')],
    ] as const) {
      prepare?.();
      const [exit, stderr] = await run(command, documentOf(product, changes));
      expect([exit, stderr]).toEqual([code, expect.stringMatching(message)]);
      expect(stderr).not.toContain('\n');
    }
    // No file is outside of the folder of the product.
    expect(readdirSync(test.folder).toSorted()).toEqual(
      ['.locks', '.token.json', product.Id, unknownId].toSorted(),
    );
    expect(await run(command, documentOf(product))).toEqual([0, '']);
    expect(test.isComplete(product)).toBe(true);
    expect(await run(command, { test: true })).toEqual([0, '']);
    const deleted = documentOf(product, { event: 'deleted', value: null });
    expect(await run(command, deleted)).toEqual([0, '']);
    expect(existsSync(join(test.folder, product.Id))).toBe(false);
  });

  it('waits for a login: wrong password, too many sessions, no network', async () => {
    const test = await openDownloads();
    const [product = expect.fail()] = await test.publish(1);
    const command = test.commandOf('http');
    const reason = async () => run(command, documentOf(product));
    writeFileSync(test.loginFile, JSON.stringify({ username: 'sandbox', password: 'hunter2' }));
    expect(await reason()).toEqual([75, 'Later: The identity service rejected the login.']);
    writeFileSync(test.loginFile, JSON.stringify({ username: 'sandbox', password: 'sandbox' }));
    const sessions = Array.from({ length: 100 }, () => test.login());
    await Promise.all(sessions);
    expect(await reason()).toEqual([75, 'Later: The identity service answered 403.']);
    await test.sandbox.close();
    expect(await reason()).toEqual([75, expect.stringContaining('Connection refused')]);
    const files = readdirSync(test.folder);
    expect(files).not.toContain('.token.json');
  });

  /** Starts it, and resolves when half of the product is written. */
  const startHalf = async ({ commandOf, sandbox }: Test, product: Product) => {
    const [program = '', ...args] = commandOf('http');
    const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    child.stdin.end(JSON.stringify(documentOf(product)));
    await expect
      .poll(() => sandbox.downloads().bytes, { interval: 10 })
      .toBeGreaterThanOrEqual(size / 2);
    return child;
  };

  it('keeps its part on SIGTERM, and starts again if the server sends no ranges', async () => {
    const test = await openDownloads(slowly);
    const [first = expect.fail()] = await test.publish(1);
    const child = await startHalf(test, first);
    child.kill('SIGTERM');
    await once(child, 'exit');
    const [part = ''] = test.parts();
    expect(statSync(join(test.folder, String(part))).size).toBeGreaterThanOrEqual(chunkBytes);
    await expect.poll(() => test.sandbox.downloads().inFlight).toBe(0);
    const { bytes } = test.sandbox.downloads();
    test.sandbox.service.change({ downloadRanges: false, downloadBytesPerSecond: null });
    expect(await run(test.commandOf('http'), documentOf(first))).toEqual([0, '']);
    expect([test.isComplete(first), test.parts()]).toEqual([true, []]);
    expect(test.sandbox.downloads().bytes).toBe(bytes + size);
  });

  it.each<Way>(hasBoto ? ['http', 's3'] : ['http'])('mixes no versions (%s)', async (way) => {
    const test = await openDownloads();
    const { sandbox } = test;
    const [first = expect.fail(), other = expect.fail()] = await test.publish(2);
    const { Id, Name } = first;
    const target = join(test.folder, Id, Name + (way === 'http' ? '.zip' : ''));
    const noteFile = join(test.folder, Id, '.version');
    /** A version of the first product. Over S3, it has the objects of a product. */
    const versionOf = (product: Product, ModificationDate: string) => ({
      document: documentOf(first, { value: { ...product, Checksum: [], ModificationDate } }),
      isComplete: () => test.isComplete(way === 'http' ? first : { ...product, Id, Name }),
    });
    const [old, next] = [versionOf(first, '1'), versionOf(other, '2')];
    const runWith = async (version: typeof old, expected = version) => {
      const { bytes } = sandbox.downloads();
      const [code] = await run(test.commandOf(way), version.document);
      return [code, expected.isComplete(), sandbox.downloads().bytes - bytes];
    };
    const cut = () => void sandbox.service.change({ nextDownloads: { connectionCut: 1 } });
    const begun = size / (way === 'http' ? 2 : 20);

    cut();
    expect(await runWith(old)).toEqual([75, false, begun]);
    // The content of the old version, of which a range would be the rest.
    const part = join(test.folder, String(test.parts()[0]));
    if (way === 's3') mkdirSync(join(part, 'measurement'));
    writeFileSync(way === 's3' ? join(part, 'measurement/data.dat') : part, 'old');
    expect(await runWith(next)).toEqual([0, true, size]);
    if (way === 's3') writeFileSync(join(target, 'removed.dat'), 'only in this version');
    cut();
    expect(await runWith(old, next)).toEqual([75, true, begun]);
    expect(await runWith(old)).toEqual([0, true, size - begun]);
    expect(existsSync(join(target, 'removed.dat'))).toBe(false);
    // A kill before the part is renamed, after and before the version is written.
    for (const note of [readFileSync(noteFile), '']) {
      renameSync(target, part);
      writeFileSync(noteFile, note);
      expect(await runWith(old)).toEqual([0, true, 0]);
    }
    writeFileSync(noteFile, 'unknown');
    expect(await runWith(old)).toEqual([0, true, size]);
    expect(test.parts()).toEqual([]);
  });

  it('waits for another one with the same product', async () => {
    const test = await openDownloads(slowly);
    const [product = expect.fail()] = await test.publish(1);
    const child = await startHalf(test, product);
    const exit = once(child, 'exit');
    expect(await run(test.commandOf('http'), documentOf(product))).toEqual([0, '']);
    expect(await exit).toEqual([0, null]);
    expect(test.sandbox.downloads()).toMatchObject({ bytes: size, requests: 1 });
  });

  it.skipIf(!canMount)('continues after a full disk (needs root)', async () => {
    const disk = mountSmallDisk(1);
    const folder = join(disk.folder, 'products');
    mkdirSync(folder);
    const test = await openDownloads({}, folder);
    const [product = expect.fail()] = await test.publish(1);
    const command = test.commandOf('http');
    expect((await run(command, { test: true }))[0]).toBe(0);
    disk.use(0.9);
    const [code, message] = await run(command, documentOf(product));
    expect([code, message]).toEqual([75, expect.stringContaining('No space left on device')]);
    disk.free();
    expect(await run(command, documentOf(product))).toEqual([0, '']);
    expect(test.isComplete(product)).toBe(true);
  });
});
