/** NATS JetStream: the content of the stream, and deliveries without a stream or a server. */
import { describe, expect, it } from 'vitest';
import type { SinkTarget } from '../../../../src/features/sinks/registry.ts';
import { collect } from '../../../helpers/deliveries.ts';
import { replaceBody } from '../../../helpers/replace-body.ts';
import { hasNats, startNats } from '../nats-server.ts';
import { openSinkContext } from '../sink-context.ts';
import { definition } from '../sink-definition.ts';
import { createVirtualTime } from '../virtual-time.ts';

type Nats = Extract<SinkTarget, { kind: 'nats' }>;

const nats = (server: string, fields: Partial<Nats> = {}): Nats => ({
  kind: 'nats',
  servers: [server],
  subject: 'earshot.products',
  credentials: { kind: 'none' },
  ca: null,
  ...fields,
});

describe.skipIf(!hasNats)('NATS JetStream (needs nats-server)', () => {
  it('stores each document once under its id, with subjects made from its fields', async () => {
    const server = await startNats();
    await server.addStream(['earshot.>']);
    const { accept, start, isDone } = await openSinkContext();
    await accept({}, { subscription: 'alps' });
    await accept({ SubscriptionEvent: 'deleted' }, { subscription: null });
    await accept({ SubscriptionEvent: 'odd.* >event' }, { subscription: 'alps' });
    const subject = 'earshot.{subscription}.{event}';
    start(definition(nats(server.server, { subject })));
    await expect.poll(() => isDone()).toBe(true);
    const kept = await server.messages();
    expect(kept.map((one) => one.subject).toSorted()).toEqual([
      'earshot._.deleted',
      'earshot.alps.created',
      'earshot.alps.odd____event',
    ]);
    for (const { id, data } of kept) expect(id).toBe(data.id);
    expect(kept.map(({ data }) => data.position).toSorted()).toEqual([1, 2, 3]);
    expect(kept[0]?.data).toMatchObject({ sink: 'sink', value: { Name: expect.any(String) } });
  });

  it('waits for a stream and a killed server, without counting attempts or storing duplicates', async () => {
    const time = createVirtualTime();
    const server = await startNats();
    const { accept, start, items, isDone, lines } = await openSinkContext(time);
    await accept();
    start(definition(nats(server.server), { attemptsMax: 1, timeoutMs: 600_000 }));
    const warned = (words: string) => () =>
      lines.some((line) => `${line.fields.reason}`.includes(words));
    await time.runUntil(warned('no stream listens to the subject earshot.products: create one'));
    await server.addStream(['earshot.products']);
    await time.runUntil(() => isDone());
    await server.kill();
    for (let i = 0; i < 20; i += 1) await accept();
    await time.runUntil(async () => (await items('waiting')).some(({ error }) => error !== null));
    await time.runUntil(warned('the connection was refused'), { stepMs: 200 });
    await server.start();
    await time.runUntil(() => isDone(), { stepMs: 400 });
    const positions = (await server.messages()).map(({ data }) => data.position);
    expect(positions.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 21 }, (_, i) => i + 1),
    );
    expect(await items('dead')).toEqual([]);
  });

  it('that hangs is aborted at the timeout, and receives the waiting items when it answers again', async () => {
    const time = createVirtualTime();
    const server = await startNats();
    await server.addStream(['earshot.products']);
    const { accept, start, items, isDone } = await openSinkContext(time);
    await accept();
    start(definition(nats(server.server), { timeoutMs: 5_000 }));
    await time.runUntil(() => isDone());
    server.pause();
    await accept();
    const errors = async () => (await items('waiting')).map(({ error }) => error);
    await time.runUntil(async () => (await errors())[0] === 'it did not answer in time');
    server.resume();
    await time.runUntil(() => isDone());
    // The stream recognises the item that it stored after the timeout.
    expect((await server.messages()).map(({ data }) => data.position)).toEqual([1, 2]);
  });

  it('receives all items except those nested too deeply to be written again, which are dead letters', async () => {
    const time = createVirtualTime();
    const server = await startNats();
    await server.addStream(['earshot.products']);
    const { accept, start, items, isDone, dataDir, store } = await openSinkContext(time);
    for (let i = 0; i < 10; i += 1) await accept();
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const rows = await collect(store.find({ order: 'oldest' }));
    for (const { position, productId } of rows.slice(0, 8)) {
      const fields = `"ProductId":"${productId}","SubscriptionEvent":"created"`;
      const body = `{${fields},"value":{"Id":"${productId}","Checksum":${deep}}}`;
      replaceBody(dataDir, position, Buffer.from(body));
    }
    start(definition(nats(server.server), { attemptsMax: 2, concurrency: 2, timeoutMs: 600_000 }));
    await time.runUntil(() => isDone(), { stepMs: 400 });
    const dead = await items('dead');
    expect(dead.map(({ position }) => position).toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    for (const one of dead) {
      expect(one).toMatchObject({ attempts: 2, error: expect.stringMatching(/call stack/) });
    }
    const kept = (await server.messages()).map(({ data }) => data.position);
    expect(kept.toSorted((a, b) => a - b)).toEqual([9, 10]);
  });

  it('refuses only items that are larger than the stream allows', async () => {
    const time = createVirtualTime();
    const server = await startNats();
    await server.addStream(['earshot.products'], { max_msg_size: 4_000 });
    const { accept, start, items } = await openSinkContext(time);
    const value = (length: number) => ({ value: { Name: 'x'.repeat(length) } });
    await accept(value(10_000));
    await accept(value(1_048_250));
    await accept(value(10));
    start(definition(nats(server.server), { attemptsMax: 1, timeoutMs: 600_000 }));
    await time.runUntil(async () => (await items('dead')).length === 2);
    expect((await items('dead')).map(({ error }) => error).toSorted()).toEqual([
      'the item exceeds the maximum size of the server (max_payload)',
      expect.stringMatching(/^the stream answered 10054: message size exceeds/),
    ]);
    expect((await server.messages()).map(({ data }) => data.position)).toEqual([3]);
  });

  it.each<[string, string[], Nats['credentials'], Nats['credentials']]>([
    [
      'user',
      ['--user', 'earshot', '--pass', 'right'],
      { kind: 'user', user: 'earshot', password: 'right' },
      { kind: 'user', user: 'earshot', password: 'wrong' },
    ],
    ['token', ['--auth', 'right'], { kind: 'token', token: 'right' }, { kind: 'none' }],
  ])('accepts the right %s, and no other', async (kind, args, right, wrong) => {
    const login = kind === 'user' ? { user: 'earshot', pass: 'right' } : { token: 'right' };
    const server = await startNats(args, login);
    await server.addStream(['earshot.products']);
    const { accept, start, items, isDone } = await openSinkContext();
    await accept();
    start(
      definition(nats(server.server, { credentials: right }), { name: 'right' }),
      definition(nats(server.server, { credentials: wrong }), { name: 'wrong' }),
    );
    await expect.poll(() => isDone('right')).toBe(true);
    const errors = async () => (await items('waiting', 'wrong')).map(({ error }) => error);
    await expect.poll(errors).toEqual(['it rejected the credentials']);
  });
});
