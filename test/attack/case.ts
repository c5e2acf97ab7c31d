/** What one step of the fuzzer sends, what may come back, and how requests are written down. */
import { hash } from 'node:crypto';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';

/** One request, or what somebody may try to pass off as one or several. */
export interface Case {
  /** Family and kind, such as `framing: two lengths`. */
  readonly name: string;
  /** What is written, one write each. */
  readonly pieces: readonly Buffer[];
  /** Who sends it: only a holder of the right credentials may be answered with 200. */
  readonly sender: 'stranger' | 'holder';
  /** How many answers may come; each has one of these statuses. */
  readonly answersMax: number;
  readonly statuses: readonly number[];
  /**
   * `stays`: answered, and the next request is served as ever, unless an answer said otherwise.
   * `closes`: the server ends it, since nobody can tell where the next request begins. `ends`: it waits
   * for more, and is told that none comes. `foreign`: sent without TLS to a port that speaks it.
   */
  readonly connection: 'stays' | 'closes' | 'ends' | 'foreign';
  /** Answers to HEAD have no body. */
  readonly isHead?: boolean;
}

/** What makers of cases draw on. */
export interface CaseContext {
  readonly random: Random;
  /** The right Authorization value. */
  readonly right: string;
  /** A whole notification whose AckId begins with `who`. */
  notification(who: Case['sender'] | 'valid', extra?: Readonly<Record<string, unknown>>): string;
}

export type CaseMaker = (context: CaseContext) => Case;

/** What a stranger may hear: the design's table, and what HTTP itself asks for. */
export const strangerStatuses: readonly number[] = [400, 401, 404, 405, 408, 413, 429, 431];

export const holderStatuses: readonly number[] = [200, ...strangerStatuses];

/** No credentials, or wrong ones. */
export const refusedLogin: readonly number[] = [401, 429];

/** A stranger's case: answered once, and served as ever afterwards, unless told otherwise. */
export function stranger(
  name: string,
  pieces: readonly Buffer[],
  statuses: readonly number[],
  further: Partial<Case> = {},
): Case {
  const usual = { sender: 'stranger', answersMax: 1, connection: 'stays' } as const;
  return { name, pieces, statuses, ...usual, ...further };
}

interface RequestParts {
  method?: string;
  target?: string;
  version?: string;
  /** Lines as they are, without line ends. */
  headers?: readonly string[];
  body?: string | Uint8Array;
  /** False leaves Content-Length out. */
  hasLength?: boolean;
}

/** A request with Host and length, and the headers that are given; text is written as Latin-1 in the head. */
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

/** A head of these lines exactly. */
export function lines(...given: readonly string[]): Buffer {
  return Buffer.from(`${given.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** The value of an Authorization header. */
export function basicLogin(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** One of a list that is not empty. */
export function oneOf<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[random.integer(0, items.length - 1)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(0, 255)));
}

/** What the maker of case number `index` draws on. */
export function caseContext(seed: number, index: number, right: string): CaseContext {
  // Neighbouring numbers would begin alike.
  const random = createRandom(hash('sha256', `${seed}/${index}`, 'buffer').readInt32LE());
  return {
    random,
    right,
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

/** What varies: how the one notification is written down. */
export function validPush(context: CaseContext): ValidPush {
  const { random, right } = context;
  const body = context.notification('valid');
  const ackId = String(JSON.parse(body).AckId);
  const login = `Authorization: ${right}`;
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
      const headers = [`aUTHORIZATION:${right}`, 'Content-Type: text/plain'];
      return push('odd case', request({ headers, body }));
    },
    () => push('by its whole address', to('http://x/notifications/fuzz')),
    () => push('with a query', to('/notifications/fuzz/?a=b')),
    () => push('blank line first', Buffer.concat([Buffer.from('\r\n'), to()])),
    () => push('expecting', request({ headers: [login, 'Expect: 100-continue'], body })),
  ];
  return oneOf(random, forms)();
}
