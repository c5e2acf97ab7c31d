/** `earshot sinks test`: a marked sample, outside of the queue, and the answer of the sink. */
import { expect, it } from 'vitest';
import { startHook } from '../sinks/hook-server.ts';
import { withStore } from './filled-store.ts';
import { createSinkCommandWorld } from './sink-world.ts';

it('delivers the newest notification that the sink wants, marked, and moves nothing', async () => {
  const hook = await startHook();
  const { earshot, fillNames, dataDir } = createSinkCommandWorld(
    `{ hook: { webhook: '${hook.url}', filter: "startswith(Name,'S2A')" } }`,
  );
  await fillNames(['S2A_1', 'S2A_2', 'S2B_3']);
  const { code, out } = await earshot(['sinks', 'test', 'hook']);
  expect({ code, out }).toEqual({
    code: 0,
    out: expect.stringMatching(/^hook acknowledged the test delivery test_\S+\.\n$/),
  });
  const [received] = hook.received;
  expect(received?.data).toMatchObject({ test: true, position: 2, value: { Name: 'S2A_2' } });
  expect(received?.headers['webhook-id']).toMatch(/^test_/);
  const cursor = await withStore(dataDir, (store) => store.cursor('sink:hook'));
  expect(cursor).toBeNull();
});

it('delivers a built-in sample without a log, and exits 1 with the answer of a sink that refuses', async () => {
  const hook = await startHook({
    answer: (_hooked, response) => void response.writeHead(422).end('no such table'),
  });
  const { earshot } = createSinkCommandWorld(
    `{ hook: { webhook: '${hook.url}' }, act: { command: ['sh', '-c', 'echo hello'] } }`,
  );
  const refused = await earshot(['sinks', 'test', 'hook']);
  expect(refused).toMatchObject({ code: 1, out: '' });
  expect(refused.err).toContain('hook did not acknowledge the test delivery: it answered 422');
  expect(hook.received[0]?.data).toMatchObject({ test: true, subscription: 'test' });
  const acted = await earshot(['sinks', 'test', 'act']);
  expect(acted).toMatchObject({ code: 0, err: expect.stringContaining('  stdout: hello\n') });
  expect((await earshot(['sinks', 'test', 'hok'])).err).toContain('Did you mean hook?');
});
