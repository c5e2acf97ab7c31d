/** Failed logins of one kind, with right ones among them from the same addresses. */
import { request } from './case.ts';
import { playCase } from './play-case.ts';
import { judgePublicAnswer } from './public-verdict.ts';
import type { Target } from './target.ts';
import { openWire, type Wire } from './wire.ts';

export interface LoginPhaseOptions {
  readonly name: string;
  readonly count: number;
  /** What `X-Forwarded-For` says in number `n`. */
  readonly from: (n: number) => string;
  /** How many must be answered with 429; the others with 401. */
  readonly limited: number;
  /** Where they really come from; 127.0.0.1 is the trusted proxy. */
  readonly localAddress?: string;
}

export interface LoginPhase {
  readonly name: string;
  readonly sent: number;
  readonly refused: number;
  readonly limited: number;
  /** Right credentials, and how many of them were let in. */
  readonly right: number;
  readonly letIn: number;
  readonly seconds: number;
  readonly faults: readonly string[];
}

const connectionCount = 8;
const rightEvery = 20;

/** To be over within the minute in which failures are counted together, unless it is about many addresses. */
export async function runLoginPhase(
  { public: address, endpoint }: Target,
  { name, count, from, limited, localAddress }: LoginPhaseOptions,
): Promise<LoginPhase> {
  const startMs = performance.now();
  const seen = new Map<number, number>();
  const faults: string[] = [];
  let [next, right, letIn] = [0, 0, 0];

  async function ask(wire: Wire, n: number, pair: string): Promise<number> {
    const login = `Authorization: Basic ${Buffer.from(pair).toString('base64')}`;
    const headers = [login, `X-Forwarded-For: ${from(n)}`];
    const pieces = [request({ method: 'GET', target: '/notifications', headers })];
    const played = await playCase(
      wire,
      {
        name,
        pieces,
        sender: 'stranger',
        answersMax: 1,
        statuses: [200, 401, 429],
        connection: 'stays',
      },
      judgePublicAnswer,
    );
    if (played.harm !== null) faults.push(played.harm);
    return played.answers[0]?.status ?? 0;
  }

  async function work(): Promise<void> {
    const wire = await openWire(address, localAddress);
    while (next < count && faults.length < 20) {
      const n = next;
      next += 1;
      const status = await ask(wire, n, `guess:${n}`);
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (n % rightEvery > 0) continue;
      right += 1;
      if ((await ask(wire, n, `${endpoint.username}:${endpoint.password}`)) === 200) letIn += 1;
    }
    wire.close();
  }

  await Promise.all(Array.from({ length: connectionCount }, work));
  const [refused, tooMany] = [seen.get(401) ?? 0, seen.get(429) ?? 0];
  if (refused !== count - limited || tooMany !== limited) {
    faults.push(
      `${refused} answers of 401 and ${tooMany} of 429, not ${count - limited} and ${limited}`,
    );
  }
  if (letIn !== right) faults.push(`${right - letIn} with the right credentials were not let in`);
  const seconds = (performance.now() - startMs) / 1_000;
  return { name, sent: count, refused, limited: tooMany, right, letIn, seconds, faults };
}
