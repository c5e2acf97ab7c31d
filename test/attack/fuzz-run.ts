/** Runs many cases on several parallel connections, with valid pushes among them. */
import {
  type Case,
  type CaseContext,
  type CaseMaker,
  caseContext,
  type ValidPush,
  validPush,
} from './case.ts';
import { bodyMakers, largeBodyMakers } from './cases/bodies.ts';
import { framingMakers } from './cases/framing.ts';
import { headerMakers } from './cases/headers.ts';
import { loginMakers } from './cases/logins.ts';
import { requestLineMakers } from './cases/request-lines.ts';
import {
  type Address,
  type Answer,
  openWire,
  type Played,
  playCase,
  playPush,
  type Wire,
} from './play-case.ts';

export interface FuzzRunOptions {
  readonly address: Address;
  readonly seed: number;
  /** Numbers of the first case, and of the one after the last. */
  readonly from: number;
  readonly until: number;
  readonly connections: number;
  /** Valid Authorization value. */
  readonly authorization: string;
  readonly draw: (context: CaseContext) => Case;
  readonly check: (answer: Answer) => string | null;
  /** True sends valid pushes among the cases. */
  readonly withPushes: boolean;
  readonly onProgress?: (played: number) => void;
}

/** Failed case, with its requests and answers. */
export interface Harm {
  readonly index: number;
  readonly name: string;
  readonly what: string;
  /** Sent and received bytes, as JSON strings with one character per byte. */
  readonly sent: string;
  readonly answered: string;
}

export interface FuzzRun {
  readonly harms: readonly Harm[];
  /** Numbers of answers by family and status; `none` for a connection closed without an answer. */
  readonly answers: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** AckIds of the answered valid pushes, and their durations. */
  readonly acknowledged: readonly string[];
  readonly pushMs: readonly number[];
}

const shownBytesMax = 3_000;
const casesPerConnectionMax = 100;

/** Number of cases after which a valid push is sent on a new connection. */
const pushEvery = 25;

/** Maximum number of harms; then the run stops. */
const harmsMax = 25;

export async function runFuzz(options: FuzzRunOptions): Promise<FuzzRun> {
  const { from, until, connections, onProgress = () => undefined } = options;
  const harms: Harm[] = [];
  const acknowledged: string[] = [];
  const pushMs: number[] = [];
  const answers: Record<string, Record<string, number>> = {};
  let next = from;

  async function push(wire: Wire, index: number, after: string): Promise<boolean> {
    const sent = validPush(caseContext(options.seed, index, options.authorization));
    const startMs = performance.now();
    const played = await playPush(wire, sent, options.check);
    pushMs.push(performance.now() - startMs);
    if (played.harm === null) acknowledged.push(sent.ackId);
    else harms.push(harmOf(index, `valid push (${sent.name}) after ${after}`, sent, played));
    return played.harm === null && played.isOpen;
  }

  async function worker(number: number): Promise<void> {
    let wire: Wire | null = null;
    let uses = 0;
    while (next < until && harms.length < harmsMax) {
      const index = next;
      next += 1;
      onProgress(index - from);
      const context = caseContext(options.seed, index, options.authorization);
      const played = options.draw(context);
      const isForeign = played.connection === 'foreign';
      if (isForeign && options.address.authorityPem === undefined) continue;
      if (wire === null || isForeign) {
        wire?.close();
        const localAddress = `127.0.${number % 4}.${context.random.integer(1, 250)}`;
        const { port } = options.address;
        wire = await openWire(isForeign ? { port } : options.address, localAddress);
        uses = 0;
        // Negative numbers, which no case has.
        if (options.withPushes && !isForeign && index % pushEvery === 0) {
          await push(wire, -1 - index, 'nothing');
        }
      }
      const result = await playCase(wire, played, options.check);
      count(answers, played, result);
      if (result.harm !== null) harms.push(harmOf(index, played.name, played, result));
      let isUsable = result.harm === null && result.isOpen;
      // The next push on the connection must receive its own answer, and be stored.
      if (isUsable && options.withPushes && context.random.chance(0.3)) {
        isUsable = await push(wire, index, played.name);
      }
      uses += 1;
      if (isUsable && uses < casesPerConnectionMax) continue;
      wire.close();
      wire = null;
    }
    wire?.close();
  }

  await Promise.all(Array.from({ length: connections }, (_, number) => worker(number)));
  return { harms, answers, acknowledged, pushMs };
}

function count(
  answers: Record<string, Record<string, number>>,
  { name }: Case,
  { answers: came }: Played,
): void {
  const [family = name] = name.split(':');
  answers[family] ??= {};
  const own = answers[family];
  const keys = came.length === 0 ? ['none'] : came.map(({ status }) => String(status));
  for (const key of keys) own[key] = (own[key] ?? 0) + 1;
}

function harmOf(
  index: number,
  name: string,
  { pieces }: Pick<ValidPush, 'pieces'>,
  { harm, answers }: Played,
): Harm {
  const sent = pieces.map(shown).join('\n  then ');
  const answered = answers.map((answer) => JSON.stringify(answer).slice(0, 2_000)).join('\n  ');
  return { index, name, what: harm ?? '', sent, answered };
}

/** Returns the bytes as a JSON string literal, one character per byte. */
function shown(bytes: Buffer): string {
  const text = JSON.stringify(bytes.toString('latin1', 0, shownBytesMax));
  return bytes.length > shownBytesMax ? `${text} … ${bytes.length} bytes` : text;
}

type Weighted<Item> = readonly (readonly [weight: number, Item])[];

const families: Weighted<Weighted<CaseMaker>> = [
  [22, requestLineMakers],
  [22, framingMakers],
  [16, headerMakers],
  [20, loginMakers],
  [19, bodyMakers],
  [1, largeBodyMakers],
];

/** Functions that create the cases for the public listener. */
export const publicMakers: Weighted<CaseMaker> = families.flatMap(([share, makers]) => {
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  return makers.map(([weight, make]) => [(share * weight) / total, make] as const);
});

/** Returns a function that draws a case, with the given weights. */
export function drawFrom(makers: Weighted<CaseMaker>): (context: CaseContext) => Case {
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  return (context) => {
    let left = context.random.between(0, total);
    const drawn = makers.find(([weight]) => {
      left -= weight;
      return left < 0;
    });
    if (drawn === undefined) throw new Error('nothing to draw from');
    return drawn[1](context);
  };
}
