/** What one step of the fuzzer sends, what may come back, and how requests are written down. */
import type { Random } from '../../src/sandbox/random.ts';

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
export interface CaseWorld {
  readonly random: Random;
  /** The right Authorization value. */
  readonly right: string;
  /** A whole notification whose AckId begins with `who`. */
  notification(who: Case['sender'] | 'valid', extra?: Readonly<Record<string, unknown>>): string;
}

export type CaseMaker = (world: CaseWorld) => Case;

/** What a stranger may hear: the design's table, and what HTTP itself asks for. */
export const strangerStatuses: readonly number[] = [400, 401, 404, 405, 408, 413, 429, 431];
export const holderStatuses: readonly number[] = [200, ...strangerStatuses];
/** No credentials, or wrong ones. */
export const refusedLogin: readonly number[] = [401, 429];

export interface RequestParts {
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

/** One of a list that is not empty. */
export function oneOf<Item>(random: Random, items: readonly Item[]): Item {
  const item = items[random.integer(0, items.length - 1)];
  if (item === undefined) throw new Error('nothing to choose from');
  return item;
}

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.integer(0, 255)));
}
