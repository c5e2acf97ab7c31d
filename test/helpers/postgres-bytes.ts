/** Messages of PostgreSQL (protocol 3, message formats), and hostile ones. */
import { startHostileServer } from './hostile-server.ts';

/** A message of this type. */
export function message(type: string, ...body: (Buffer | string)[]): Buffer {
  const bytes = Buffer.concat(body.map((part) => Buffer.from(part)));
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length + 4);
  return Buffer.concat([Buffer.from(type), length, bytes]);
}

const int16 = (value: number) => Buffer.from([value >> 8, value & 255]);
const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

export const ready = message('Z', 'I');
/** The login, up to the first statement. */
export const loggedIn = Buffer.concat([
  message('R', int32(0)),
  message('K', int32(7), int32(7)),
  ready,
]);

/** The result of a statement with one row of one column: `pid`, a number, or another one. */
export const result = (name: string, value: string, ...notices: Buffer[]): Buffer =>
  Buffer.concat([
    ...[message('1'), message('2')],
    message(
      'T',
      int16(1),
      `${name}\0`,
      int32(0),
      int16(0),
      int32(name === 'pid' ? 23 : 25),
      int16(-1),
      int32(-1),
      int16(0),
    ),
    message('D', int16(1), int32(value.length), value),
    ...notices,
    ...[message('C', 'SELECT 1\0'), ready],
  ]);

/** A warning. */
export const warning = (code: string, text: string, routine: string): Buffer =>
  message('N', 'SWARNING\0', `C${code}\0`, `M${text}\0`, `R${routine}\0`, '\0');

/** Answers for which the client library never returns. */
export const blockingAnswers: [name: string, bytes: Buffer][] = [
  ['an error without a body', Buffer.from('4500000004', 'hex')],
  ['an error without an end', message('E', 'SERROR')],
  ['a notice without an end', message('N', 'SWARNING\0', 'C')],
];

/** Answers that end the client library, or use any memory. */
export const hostileAnswers: [name: string, bytes: Buffer | { flood: Buffer }, reason: string][] = [
  ['a login with gss', message('R', int32(7)), 'made the client library fail'],
  ['a login with an unknown method', message('R', int32(99)), 'made the client library fail'],
  ['a row of length 0', Buffer.from('4400000000', 'hex'), 'made the client library fail'],
  ['a message without a body', Buffer.from('4400000004', 'hex'), 'made the client library fail'],
  [
    'a declared 2 GB message',
    { flood: Buffer.from('447fffffff', 'hex') },
    '(used too much memory|did not answer in time)',
  ],
  [
    'a declared 4 GB message',
    { flood: Buffer.from('53ffffffff', 'hex') },
    '(used too much memory|did not answer in time)',
  ],
  ['a row with -1 columns', message('D', int16(-1)), 'made the client library fail'],
  [
    'a row with a truncated field',
    message('D', int16(9), int32(3), 'x'),
    'made the client library fail',
  ],
  ['a row that nobody requested', message('D', int16(0)), ''],
  [
    'rows without end',
    { flood: Buffer.concat([loggedIn, message('T', int16(2))]) },
    '(memory|fail|error|no connection)',
  ],
];

/** Starts a server that answers each statement; it accepts every login. */
export async function startStub(answer: (sql: string) => Buffer): Promise<string> {
  const port = await startHostileServer(() => {
    let isLoggedIn = false;
    return (data) => {
      if (!isLoggedIn) {
        isLoggedIn = true;
        return loggedIn;
      }
      // Statements without values are simple queries; the others end with Sync.
      const text = data.toString('latin1');
      return /^Q/.test(text) || text.endsWith('S\0\0\0\x04') ? answer(text) : null;
    };
  });
  return `postgres://earshot:pass-word@127.0.0.1:${port}/earshot`;
}
