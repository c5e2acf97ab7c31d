/** Hostile and valid requests of the fuzzer: their bytes and permitted answers, and the parts to build them. */
import { hash } from 'node:crypto';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import { notification } from '../helpers/deliveries.ts';

/** Bytes that are, or imitate, one or several requests. */
export interface Case {
  /** Family and kind, such as `framing: broken chunk`. */
  readonly name: string;
  /** Bytes to send, one write each. */
  readonly pieces: readonly Buffer[];
  /** Maximum number of answers; each has one of these statuses. */
  readonly answersMax: number;
  readonly statuses: readonly number[];
  /**
   * `stays`: answered, and the connection stays usable, unless an answer closes it.
   * `closes`: the server closes it, since the start of the next request is unknown. `ends`: the server
   * waits for more bytes, and the client ends the connection. `foreign`: sent without TLS to a TLS port.
   */
  readonly connection: 'stays' | 'closes' | 'ends' | 'foreign';
}

/** Inputs of the functions that build requests. */
export interface CaseContext {
  readonly random: Random;
  /** Valid Authorization value. */
  readonly authorization: string;
  /** Authorization header of the sender; empty for an unknown client. */
  readonly login: readonly string[];
  /** Returns a notification whose AckId names the sender. */
  notification(): string;
}

/** Permitted answers to an unknown client: those of the design, and those of HTTP itself. */
const unknownStatuses: readonly number[] = [400, 401, 404, 405, 408, 413, 429, 431];

/** No credentials, or wrong ones. */
export const refused: readonly number[] = [401, 429];

/** Limits of a kind of case; by default one answer to an unknown client, after which the connection stays. */
interface Rules extends Partial<Pick<Case, 'statuses' | 'connection' | 'answersMax'>> {
  /** Default: an unknown client. `either` draws one. */
  readonly sender?: 'authenticated' | 'either';
}

/** A kind of case: how often it is drawn, its rules, and its bytes. */
export interface Kind {
  readonly weight: number;
  readonly name: string;
  readonly rules: Rules;
  build(context: CaseContext): Buffer | readonly Buffer[];
}

export function kind(weight: number, name: string, rules: Rules, build: Kind['build']): Kind {
  return { weight, name, rules, build };
}

/** Draws case number `index`; the same seed draws the same bytes. */
export function drawCase(
  kinds: readonly Kind[],
  { seed, index, authorization }: { seed: number; index: number; authorization: string },
): Case {
  const random = randomOf(seed, index);
  const total = kinds.reduce((sum, { weight }) => sum + weight, 0);
  let left = random.between(0, total);
  const drawn = kinds.find(({ weight }) => {
    left -= weight;
    return left < 0;
  });
  if (drawn === undefined) throw new Error('nothing to draw from');
  const { sender, ...rules } = drawn.rules;
  const isKnown = sender === 'authenticated' || (sender === 'either' && random.chance(0.5));
  const built = drawn.build({
    ...{ random, authorization, login: isKnown ? [`Authorization: ${authorization}`] : [] },
    notification: () =>
      notificationBody(random, `${isKnown ? 'authenticated' : 'unknownClient'}-${index}-${seed}`),
  });
  const pieces = Buffer.isBuffer(built) ? [built] : built;
  const usual = { statuses: unknownStatuses, answersMax: 1, connection: 'stays' } as const;
  return { name: drawn.name, pieces, ...usual, ...rules };
}

export function randomOf(seed: number, index: number): Random {
  // Without the hash, neighbouring numbers would draw similar values.
  return createRandom(hash('sha256', `${seed}/${index}`, 'buffer').readInt32LE());
}

function notificationBody(random: Random, ackId: string): string {
  const productId = random.uuid();
  const own = { AckId: ackId, ProductId: productId, value: { Id: productId, Name: 'fuzz' } };
  return JSON.stringify(notification(0, { ...own, ProductName: `S2A_${random.hex(20)}.SAFE` }));
}

interface RequestParts {
  method?: string;
  target?: string;
  /** Header lines without line ends. */
  headers?: readonly string[];
  body?: string | Uint8Array;
  /** False omits Content-Length. */
  hasLength?: boolean;
}

/** Builds a request with Host, length and the given headers; its head is encoded as Latin-1. */
export function request(parts: RequestParts): Buffer {
  const { method = 'POST', target = '/notifications/fuzz', headers = [] } = parts;
  const body = Buffer.from(parts.body ?? '');
  const { hasLength = body.length > 0 } = parts;
  const length = hasLength ? [`Content-Length: ${body.length}`] : [];
  const lines = [`${method} ${target} HTTP/1.1`, 'Host: localhost', ...headers, ...length];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** Builds a request whose body is these bytes after the head, without a Content-Length of its own. */
export function headThen(headers: readonly string[], tail: string): Buffer {
  return Buffer.concat([request({ headers, hasLength: false }), Buffer.from(tail)]);
}

/** Returns the value of an Authorization header. */
export function basicLogin(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(0, 255)));
}

/** Builds a push of a valid notification: number `index`, as usual or in a random form. */
export function validPush(
  { seed, index, authorization }: { seed: number; index: number; authorization: string },
  isUsual = false,
) {
  const random = randomOf(seed, index);
  const ackId = `valid-${index}-${seed}`;
  const body = notificationBody(random, ackId);
  const login = `Authorization: ${authorization}`;
  const to = (target?: string, headers = [login]) =>
    request({ headers, body, ...(target === undefined ? {} : { target }) });
  const chunk = (text: string, more = '') => `${text.length.toString(16)}${more}\r\n${text}\r\n`;
  const middle = random.integer(1, body.length - 1);
  const halves = chunk(body.slice(0, middle), ';x=y') + chunk(body.slice(middle));
  const chunks = headThen([login, 'Transfer-Encoding: chunked'], `${halves}000\r\nX: y\r\n\r\n`);
  const forms: Record<string, Buffer[]> = {
    plain: [to()],
    'chunks with extensions and trailers': [chunks],
    'in two pieces': [to().subarray(0, middle), to().subarray(middle)],
    'odd case': [to(undefined, [`aUTHORIZATION:${authorization}`, 'Content-Type: text/plain'])],
    'by its whole address': [to('http://x/notifications/fuzz')],
    'with a query': [to('/notifications/fuzz/?a=b')],
    'blank line first': [Buffer.concat([Buffer.from('\r\n'), to()])],
    expecting: [to(undefined, [login, 'Expect: 100-continue'])],
  };
  const name = isUsual ? 'plain' : random.pick(Object.keys(forms));
  return { name, pieces: forms[name] ?? [], ackId };
}
