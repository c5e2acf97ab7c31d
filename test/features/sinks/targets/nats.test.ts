/** NATS JetStream: the content of the stream, and deliveries without a stream or a server. */
import { describe, expect, it } from 'vitest';
import { startTcpServer } from '../../../helpers/tcp-server.ts';
import { hasNats, startNats } from '../nats-server.ts';
import { openSinkContext, openTestTarget } from '../sink-context.ts';
import { definition, natsTarget } from '../sink-definition.ts';
import { sinkDocument } from '../sink-items.ts';
import { createVirtualTime } from '../virtual-time.ts';

const soon = () => AbortSignal.timeout(10_000);

describe.skipIf(!hasNats)('NATS JetStream (needs nats-server)', () => {
  it('stores each document once under its id, with subjects made from its fields', async () => {
    const server = await startNats();
    await server.addStream(['earshot.>']);
    const { accept, start, isDone } = await openSinkContext();
    await accept({}, { subscription: 'alps' });
    await accept({ SubscriptionEvent: 'deleted' }, { subscription: null });
    await accept({ SubscriptionEvent: 'odd.* >event' }, { subscription: 'alps' });
    const subject = 'earshot.{subscription}.{event}';
    start(definition(natsTarget(server.server, { subject })));
    await expect.poll(() => isDone()).toBe(true);
    const kept = await server.messages();
    expect(kept.map((one) => one.subject).toSorted()).toEqual([
      'earshot._.deleted',
      'earshot.alps.created',
      'earshot.alps.odd____event',
    ]);
    for (const { id, data, contentType } of kept) {
      expect([id, contentType]).toEqual([data.id, 'application/json']);
    }
    expect(kept.map(({ data }) => data.position).toSorted()).toEqual([1, 2, 3]);
    expect(kept[0]?.data).toMatchObject({ sink: 'sink', value: { Name: expect.any(String) } });
  });

  it('waits for a stream, a killed and a hanging server, without counting attempts or storing duplicates', async () => {
    const time = createVirtualTime();
    const server = await startNats();
    const { accept, start, items, isDone, lines } = await openSinkContext(time);
    await accept();
    const subject = 'earshot.{event}';
    start(
      definition(natsTarget(server.server, { subject }), { attemptsMax: 1, timeoutMs: 60_000 }),
    );
    const warned = (words: string) => () =>
      lines.some((line) => `${line.fields.reason}`.includes(words));
    await time.runUntil(warned('subject earshot.created: create one for earshot.*'));
    await server.addStream(['earshot.*']);
    await time.runUntil(() => isDone());
    await server.kill();
    for (let i = 0; i < 20; i += 1) await accept();
    await time.runUntil(warned('the connection was refused'), { stepMs: 200 });
    await server.start();
    await time.runUntil(() => isDone(), { stepMs: 400 });
    server.pause();
    await accept();
    const error = async () => (await items('waiting'))[0]?.error;
    await time.runUntil(async () => (await error()) === 'it did not answer in time');
    server.resume();
    await time.runUntil(() => isDone());
    // The stream recognises the item that it stored after the timeout.
    const positions = (await server.messages()).map(({ data }) => data.position);
    const all = Array.from({ length: 22 }, (_, i) => i + 1);
    expect(positions.toSorted((a, b) => a - b)).toEqual(all);
    expect(await items('dead')).toEqual([]);
  });

  it('refuses only items that are larger than the stream allows', async () => {
    const server = await startNats();
    await server.addStream(['earshot.products'], { max_msg_size: 4_000 });
    const { deliver } = openTestTarget(natsTarget(server.server));
    const answer = (length: number) =>
      deliver({ ...sinkDocument, value: { Name: 'x'.repeat(length) } }, soon());
    const tooLarge = expect.stringMatching(/^the stream answered 10054: message size exceeds/);
    expect(await answer(10_000)).toEqual({ kind: 'refused', reason: tooLarge });
    const reason = 'the item exceeds the maximum size of the server (max_payload)';
    expect(await answer(1_048_250)).toEqual({ kind: 'refused', reason });
    expect(await answer(10)).toEqual({ kind: 'acknowledged' });
    expect(await server.messages()).toHaveLength(1);
  });

  const user = { user: 'earshot', pass: 'right' };
  it.each([
    [['--user', 'earshot', '--pass', 'right'], user, { ...user, pass: 'wrong' }],
    [['--auth', 'right'], { token: 'right' }, null],
  ])('with %j accepts the right login, and no other', async (args, right, wrong) => {
    const server = await startNats(args, right);
    await server.addStream(['earshot.products']);
    const answer = (login: typeof wrong | typeof right) =>
      openTestTarget(natsTarget(server.server, { login })).deliver(sinkDocument, soon());
    expect(await answer(right)).toEqual({ kind: 'acknowledged' });
    const reason = 'it rejected the credentials';
    expect(await answer(wrong)).toEqual({ kind: 'misconfigured', reason });
  });
});

it('a NATS server that does not answer leaves no socket open', async () => {
  const silent = await startTcpServer();
  const target = openTestTarget(natsTarget(`nats://127.0.0.1:${silent.port}`));
  const late = new AbortController();
  const answer = target.deliver(sinkDocument, late.signal);
  await expect.poll(silent.open).toBe(1);
  late.abort(new DOMException('the time is up', 'TimeoutError'));
  expect(await answer).toMatchObject({ reason: 'it did not answer in time' });
  await target.close();
  await expect.poll(silent.open).toBe(0);
});
