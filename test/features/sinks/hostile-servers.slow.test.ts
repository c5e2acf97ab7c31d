/** Servers of sinks whose answers end or block the client library, or use any memory: a failed delivery. */
import { describe, expect, it } from 'vitest';
import { checkSinks, type SinkTarget } from '../../../src/features/sinks/registry.ts';
import { passSeconds } from '../../helpers/fast-seconds.ts';
import { answerOnce, measureDelay, startHostileServer } from '../../helpers/hostile-server.ts';
import { blockingAnswers, hostileAnswers } from '../../helpers/postgres-bytes.ts';
import { postgresTarget } from './postgres-database.ts';
import { openTestTarget } from './sink-context.ts';
import { definition, mqttTarget, natsTarget } from './sink-definition.ts';
import { sinkDocument } from './sink-items.ts';

/** Delivers an item, delivers a test item, and runs the doctor's check. Returns the reasons of their failures. */
async function failuresOf(target: SinkTarget, signal: AbortSignal): Promise<string[]> {
  const opened = openTestTarget(target, { timeoutMs: 20_000 });
  const deps = { findProgram: () => null, signal };
  const [answer, tested, found] = await Promise.all([
    opened.deliver(sinkDocument, signal),
    opened.deliver({ ...sinkDocument, test: true }, signal),
    checkSinks([definition(target)], deps),
  ]);
  return [answer, tested]
    .map((one) => ('reason' in one ? one.reason : one.kind))
    .concat(found.map(({ level, text }) => `${level}: ${text}`));
}

type Case = [
  name: string,
  answer: Parameters<typeof answerOnce>[0],
  reason: string,
  greeting?: string,
];

/** Asserts that servers with these answers fail with the reasons, and that this thread is never blocked. */
async function expectFailures(
  targetAt: (address: string) => SinkTarget,
  cases: readonly Case[],
): Promise<void> {
  const delayMs = measureDelay();
  const found: (readonly [name: string, failures: string[]])[] = [];
  // A few at a time: each one starts two threads.
  for (let first = 0; first < cases.length; first += 4) {
    const some = cases.slice(first, first + 4);
    const failures = some.map(async ([name, answer, reason, greeting]) => {
      const port = await startHostileServer(answerOnce(answer), greeting);
      // Without an expected reason, the server may just not answer.
      const signal = reason === '' ? AbortSignal.timeout(2_000) : never;
      return [name, await failuresOf(targetAt(`127.0.0.1:${port}`), signal)] as const;
    });
    found.push(...(await Promise.all(failures)));
  }
  const expected = cases.map(([name, , reason]) => [
    name,
    ['', '', 'critical: '].map((start) =>
      expect.stringMatching(new RegExp(`^${start}.*${reason}`)),
    ),
  ]);
  expect(found).toEqual(expected);
  expect(delayMs()).toBeLessThan(250);
}

const never = new AbortController().signal;
const postgresAt = (address: string) => postgresTarget(`postgres://u:p@${address}/gis`);
const mqttAt = (address: string) => mqttTarget(`mqtt://${address}`);
const natsAt = (address: string) => natsTarget(`nats://${address}`);

describe('answers of', () => {
  it(
    'a PostgreSQL server make deliveries, tests and checks fail, not the process',
    () => expectFailures(postgresAt, hostileAnswers),
    120_000,
  );

  it('a PostgreSQL server that block the client library, too', async () => {
    passSeconds();
    const cases = blockingAnswers.map(([name, bytes]): Case => [name, bytes, 'blocked the client']);
    await expectFailures(postgresAt, cases);
  }, 120_000);

  it(
    'an MQTT broker, too',
    () =>
      expectFailures(mqttAt, [
        [
          'a 256 MB packet',
          { flood: Buffer.from('30ffffff7f', 'hex') },
          '(used too much memory|did not answer in time|the connection failed)',
        ],
        ['a length of five bytes', Buffer.from('20ffffffffff', 'hex'), ''],
        ['an answer to the login without a body', Buffer.from('2000', 'hex'), ''],
        ['a packet of type 0', Buffer.from('0000', 'hex'), ''],
        ['an answer of a web server', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), ''],
      ]),
    120_000,
  );

  it('a NATS server, too', () => {
    const floods = ['INFO {', 'INFO {}\r\nMSG a 1 2000000000\r\n'].map(
      (text): Case => [text, { flood: Buffer.from(text) }, ''],
    );
    const greetings = [
      ...['INFO {}\r\nMSG a\r\n', 'INFO {x\r\n'],
      'HTTP/1.1 400 Bad Request\r\n\r\n',
    ].map((text): Case => [text, Buffer.from(text), '', text]);
    return expectFailures(natsAt, [...floods, ...greetings]);
  }, 120_000);

  it('a broker that sends acknowledgements without end do not block this thread', async () => {
    const accepted = Buffer.from('200300000000', 'hex');
    const repeated = Buffer.from('40021234', 'hex');
    const port = await startHostileServer(answerOnce({ flood: accepted, repeated }));
    const delayMs = measureDelay();
    await failuresOf(mqttAt(`127.0.0.1:${port}`), AbortSignal.timeout(5_000));
    expect(delayMs()).toBeLessThan(250);
  }, 120_000);
});
