/** Cases of the fuzzer: bytes to send, permitted answers, and helpers that build requests. */
import { hash } from 'node:crypto';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';

/** Bytes that are, or imitate, one or several requests. */
export interface Case {
  /** Family and kind, such as `framing: two lengths`. */
  readonly name: string;
  /** Bytes to send, one write each. */
  readonly pieces: readonly Buffer[];
  /** Only an authenticated sender may be answered with 200. */
  readonly sender: 'unknownClient' | 'authenticated';
  /** Maximum number of answers; each has one of these statuses. */
  readonly answersMax: number;
  readonly statuses: readonly number[];
  /**
   * `stays`: answered, and the connection stays usable, unless an answer closes it.
   * `closes`: the server closes it, since the start of the next request is unknown. `ends`: the server
   * waits for more bytes, and the client ends the connection. `foreign`: sent without TLS to a TLS port.
   */
  readonly connection: 'stays' | 'closes' | 'ends' | 'foreign';
  /** Answers to HEAD have no body. */
  readonly isHead?: boolean;
}

/** Inputs of the functions that create cases. */
export interface CaseContext {
  readonly random: Random;
  /** Valid Authorization value. */
  readonly authorization: string;
  /** Returns a notification whose AckId begins with `who`. */
  notification(who: Case['sender'] | 'valid', extra?: Readonly<Record<string, unknown>>): string;
}

export type CaseMaker = (context: CaseContext) => Case;

/** Statuses permitted for unknown clients: those of the design, and those of HTTP itself. */
export const unknownClientStatuses: readonly number[] = [400, 401, 404, 405, 408, 413, 429, 431];

export const authenticatedStatuses: readonly number[] = [200, ...unknownClientStatuses];

/** No credentials, or wrong ones. */
export const refusedLogin: readonly number[] = [401, 429];

/** Creates a case, by default of an unknown client, which is answered once, and the connection stays usable. */
export function attackCase(
  name: string,
  pieces: readonly Buffer[],
  statuses: readonly number[],
  further: Partial<Case> = {},
): Case {
  const usual = { sender: 'unknownClient', answersMax: 1, connection: 'stays' } as const;
  return { name, pieces, statuses, ...usual, ...further };
}

interface RequestParts {
  method?: string;
  target?: string;
  version?: string;
  /** Header lines without line ends. */
  headers?: readonly string[];
  body?: string | Uint8Array;
  /** False omits Content-Length. */
  hasLength?: boolean;
}

/** Builds a request with Host, length and the given headers; its head is encoded as Latin-1. */
export function request(parts: RequestParts): Buffer {
  const { method = 'POST', target = '/notifications/fuzz', version = 'HTTP/1.1' } = parts;
  const body = Buffer.from(parts.body ?? '');
  const { headers = [], hasLength = body.length > 0 } = parts;
  const lines = [
    `${method} ${target} ${version}`,
    'Host: localhost',
    ...headers,
    ...(hasLength ? [`Content-Length: ${body.length}`] : []),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** Builds a request head of exactly these lines. */
export function lines(...given: readonly string[]): Buffer {
  return Buffer.from(`${given.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Returns the value of an Authorization header. */
export function basicLogin(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Draws an item of a list that is not empty. */
export function oneOf<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[random.integer(0, items.length - 1)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(0, 255)));
}

/** Creates the context of case number `index`. */
export function caseContext(seed: number, index: number, authorization: string): CaseContext {
  // Without the hash, neighbouring numbers would draw similar values.
  const random = createRandom(hash('sha256', `${seed}/${index}`, 'buffer').readInt32LE());
  return {
    random,
    authorization,
    notification: (who, extra = {}) => {
      const productId = random.uuid();
      return JSON.stringify({
        '@odata.context': '$metadata#Notification/$entity',
        SubscriptionEvent: 'created',
        ProductId: productId,
        ProductName: `S2A_${random.hex(20)}.SAFE`,
        SubscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        NotificationDate: '2026-05-01T10:59:08.698Z',
        AckId: `${who}-${index}-${random.hex(16)}`,
        value: { Id: productId, Name: 'fuzz' },
        ...extra,
      });
    },
  };
}

export interface ValidPush {
  readonly name: string;
  readonly pieces: readonly Buffer[];
  readonly ackId: string;
}

/** Builds a push of a valid notification in a random form. */
export function validPush(context: CaseContext): ValidPush {
  const { random, authorization } = context;
  const body = context.notification('valid');
  const ackId = String(JSON.parse(body).AckId);
  const login = `Authorization: ${authorization}`;
  const push = (name: string, ...pieces: Buffer[]) => ({ name, pieces, ackId });
  const to = (target?: string) =>
    request({ headers: [login], body, ...(target === undefined ? {} : { target }) });
  const chunk = (text: string, more = '') => `${text.length.toString(16)}${more}\r\n${text}\r\n`;
  const coded = (text: string) =>
    Buffer.concat([
      request({ headers: [login, 'Transfer-Encoding: chunked'], hasLength: false }),
      Buffer.from(text),
    ]);
  const middle = random.integer(1, body.length - 1);
  const forms: readonly (() => ValidPush)[] = [
    () => push('plain', to()),
    () => push('chunked', coded(`${chunk(body)}0\r\n\r\n`)),
    () => {
      const chunks = chunk(body.slice(0, middle), ';x=y') + chunk(body.slice(middle));
      return push('chunks with extensions and trailers', coded(`${chunks}000\r\nX: y\r\n\r\n`));
    },
    () => {
      const whole = to();
      const cut = random.integer(1, whole.length - 1);
      return push('in two pieces', whole.subarray(0, cut), whole.subarray(cut));
    },
    () => {
      const headers = [`aUTHORIZATION:${authorization}`, 'Content-Type: text/plain'];
      return push('odd case', request({ headers, body }));
    },
    () => push('by its whole address', to('http://x/notifications/fuzz')),
    () => push('with a query', to('/notifications/fuzz/?a=b')),
    () => push('blank line first', Buffer.concat([Buffer.from('\r\n'), to()])),
    () => push('expecting', request({ headers: [login, 'Expect: 100-continue'], body })),
  ];
  return oneOf(random, forms)();
}
