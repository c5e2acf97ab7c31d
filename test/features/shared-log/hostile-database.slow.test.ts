/** Servers of the shared log: answers that end or block the client library. No PostgreSQL is needed. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { openConnections } from '../../../src/features/shared-log/connection.ts';
import { passSeconds } from '../../helpers/fast-seconds.ts';
import { answerOnce, measureDelay, startHostileServer } from '../../helpers/hostile-server.ts';
import {
  blockingAnswers,
  hostileAnswers,
  result,
  startStub,
  warning,
} from '../../helpers/postgres-bytes.ts';
import { openLog } from './shared-log-context.ts';

/** Opens connections to a server that answers each statement. */
async function connect(answer: (sql: string) => Buffer) {
  const connections = openConnections([await startStub(answer)]);
  onTestFinished(() => connections.close());
  return connections;
}

// The sinks use the same client library: their test has all answers.
const answersToLogin = [
  ...hostileAnswers.slice(0, 2),
  ...blockingAnswers.slice(0, 1).map((one) => [...one, 'blocked the client library'] as const),
];

const inStatements = [
  ['a message without a body', '4400000004', false],
  ['a row of length 0', '4400000000', false],
  ['an error without a body', '4500000004', true],
] as const;

describe('a hostile server', () => {
  it.each(answersToLogin)(
    'that answers the login with %s is an error',
    async (_name, bytes, reason) => {
      if (reason.startsWith('blocked')) passSeconds();
      const port = await startHostileServer(answerOnce(bytes));
      const delayMs = measureDelay();
      const opened = openLog({ url: `postgres://u:p@127.0.0.1:${port}/earshot` });
      const text = expect.stringMatching(new RegExp(reason));
      await expect(opened).rejects.toMatchObject({ code: 'unavailable', advice: text });
      expect(delayMs()).toBeLessThan(250);
    },
  );

  it.each(inStatements)(
    'that answers a statement with %s leaves its result unknown',
    async (_name, hex, blocks) => {
      const endFastSeconds = blocks ? passSeconds() : () => undefined;
      let answer: Buffer = Buffer.from(hex, 'hex');
      const { query } = await connect(() => answer);
      await expect(query('SELECT $1', ['x'])).rejects.toMatchObject({
        ...{ code: 'unavailable', facts: { unknown: true, sqlState: '' } },
      });
      endFastSeconds();
      answer = result('value', 'works');
      // A thread that failed is started again after a delay.
      await expect
        .poll(() => query('SELECT 1').catch(() => []), { timeout: 20_000 })
        .toEqual([{ value: 'works' }]);
    },
  );
});

describe('a warning', () => {
  it.each([
    ['01000', 'database "gis" must be vacuumed within 9000000 transactions', 'GetNewTransactionId'],
    ['XX001', 'page verification failed', 'PageIsVerifiedExtended'],
  ])('%s: %s does not refuse', async (code, text, routine) => {
    const notice = warning(code, text, routine);
    const { query } = await connect(() => result('value', '1', notice));
    expect(await query('SELECT 1')).toEqual([{ value: '1' }]);
  });

  it('that the wait for the standby was cancelled refuses, also after other warnings', async () => {
    const notices = [
      warning('01000', 'canceling wait for synchronous replication', 'SyncRepWaitForLSN'),
      warning('01000', 'another one', 'other'),
    ];
    const { query } = await connect(() => result('value', '1', ...notices));
    await expect(query('SELECT 1')).rejects.toMatchObject({
      ...{ code: 'unavailable', facts: { unknown: true } },
      advice: '(the wait for the standby was cancelled)',
    });
  });
});
