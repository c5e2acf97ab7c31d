/** `npm run attack -- logins`: failed logins of thousands of addresses, notations of one, and forged addresses. */
import { alignTable, figure, megabytes } from '../../bench/figures.ts';
import { type Benchmark, dirOption, integer } from '../../bench/harness.ts';
import { checkPublicAnswer } from './answer-checks.ts';
import { attackCase, basicLogin, request } from './case.ts';
import { openWire, playCase, type Wire } from './play-case.ts';
import type { Target } from './target.ts';
import { renderHarms, renderPushes, whilePushing } from './while-pushing.ts';

const options = {
  addresses: integer('N', 'number of addresses', { default: 20_000, min: 1, max: 10_000_000 }),
  dir: dirOption,
};

/** Maximum memory growth. The number of recorded addresses is bounded. */
const grownBytesMax = 150e6;

const four = (n: number) => `${11 + (n >> 24)}.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

const hex = (n: number) => n.toString(16);

/** Different notations of addresses in one /64. */
const notations: readonly ((n: number) => string)[] = [
  (n) => `2001:db8:0:0:0:0:0:${hex(n + 1)}`,
  (n) => `2001:DB8::${hex(n + 1).toUpperCase()}`,
  (n) => `[2001:0db8:0000:0000:0000:0000:0000:${hex(n + 1).padStart(4, '0')}]:${1_024 + n}`,
  (n) => `2001:db8::1:${hex(n)}`,
  (n) => `2001:db8::${four(n)}`,
];

/** Returns the phases, with the number of logins that must be limited. */
const phasesOf = (addresses: number): readonly LoginPhaseOptions[] => [
  { name: 'many addresses', count: addresses, from: four, limited: 0 },
  {
    name: 'as many IPv6 networks',
    count: addresses,
    from: (n) => `2a00:${hex(n >> 16)}:${hex(n & 0xffff)}:1::${hex(n)}`,
    limited: 0,
  },
  { name: 'one address', count: 1_000, from: () => '203.0.113.7', limited: 900 },
  {
    name: 'one IPv6 network, all notations',
    count: 1_000,
    from: (n) => (notations[n % notations.length] ?? four)(n),
    limited: 900,
  },
  {
    name: 'one IPv4, as IPv6',
    count: 1_000,
    from: (n) => (n % 2 === 0 ? '198.51.100.9' : '::ffff:198.51.100.9'),
    limited: 900,
  },
  // The entries before that of the proxy come from the client and are not trusted.
  {
    name: 'forged entry before the proxy',
    count: 1_000,
    from: (n) => `${four(n)}, 192.0.2.1`,
    limited: 900,
  },
  // The header of a peer that is not a trusted proxy is ignored.
  {
    ...{ name: 'forged entry without a proxy', count: 1_000, from: four, limited: 900 },
    localAddress: '127.0.0.9',
  },
];

export const logins: Benchmark<typeof options> = {
  command: 'npm run attack -- logins',
  about: `Sends failed logins to its own \`earshot start\` on loopback, from many addresses (reported by a
trusted proxy), from one, from one IPv6 network in all its notations, and with forged addresses. Valid
credentials must always be accepted, even from limited addresses.`,
  options,
  closing: 'Exit code: 0 no harm, 1 harm, 2 wrong usage.',
  async measure({ addresses }, context) {
    const environment = { EARSHOT_TRUSTED_PROXIES: '127.0.0.1' };
    const { result: phases, ...outcome } = await whilePushing(
      context,
      { environment },
      async (target) => {
        const ended: LoginPhase[] = [];
        for (const phase of phasesOf(addresses)) {
          context.progress.show(phase.name);
          ended.push(await runLoginPhase(target, phase));
        }
        return ended;
      },
    );
    const {
      memory,
      evidence: { loginLines },
    } = outcome;
    const grownBytes = memory.peakBytes - memory.startBytes;
    const harms = [
      ...phases.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)),
      ...(grownBytes > grownBytesMax ? [`memory grew by ${megabytes(grownBytes)} MB`] : []),
      ...outcome.harms,
    ];
    return {
      report: { phases, ...outcome, loginLines, harms },
      text: [
        renderPhases(phases),
        renderPushes(outcome, 'lines about logins', figure(loginLines)),
        renderHarms(harms),
      ],
      hasFailed: harms.length > 0,
    };
  },
};

function renderPhases(phases: readonly LoginPhase[]): string {
  const head = ['failed logins from', 'sent', '401', '429', 'valid logins', 'accepted', 'seconds'];
  const rows = phases.map(({ name, sent, refused, limited, valid, accepted, seconds }) => [
    name,
    ...[sent, refused, limited, valid, accepted, seconds].map((value) => figure(value)),
  ]);
  return alignTable([head, ...rows]);
}

interface LoginPhaseOptions {
  readonly name: string;
  readonly count: number;
  /** Returns the `X-Forwarded-For` of login number `n`. */
  readonly from: (n: number) => string;
  /** Number that must be answered with 429; the others with 401. */
  readonly limited: number;
  /** Actual source address; 127.0.0.1 is the trusted proxy. */
  readonly localAddress?: string;
}

interface LoginPhase {
  readonly name: string;
  readonly sent: number;
  readonly refused: number;
  readonly limited: number;
  /** Number of valid logins, and of those accepted. */
  readonly valid: number;
  readonly accepted: number;
  readonly seconds: number;
  readonly faults: readonly string[];
}

const connectionCount = 8;
const validEvery = 20;

/** Runs a phase; unless it uses many addresses, it must end within the minute in which failures are counted together. */
async function runLoginPhase(
  { public: address, authorization }: Target,
  { name, count, from, limited, localAddress }: LoginPhaseOptions,
): Promise<LoginPhase> {
  const startMs = performance.now();
  const seen = new Map<number, number>();
  const faults: string[] = [];
  let [next, valid, accepted] = [0, 0, 0];

  async function ask(wire: Wire, n: number, login: string): Promise<number> {
    const headers = [`Authorization: ${login}`, `X-Forwarded-For: ${from(n)}`];
    const pieces = [request({ method: 'GET', target: '/notifications', headers })];
    const attempt = attackCase(name, pieces, [200, 401, 429]);
    const played = await playCase(wire, attempt, checkPublicAnswer);
    if (played.harm !== null) faults.push(played.harm);
    return played.answers[0]?.status ?? 0;
  }

  async function work(): Promise<void> {
    const wire = await openWire(address, localAddress);
    while (next < count && faults.length < 20) {
      const n = next;
      next += 1;
      const status = await ask(wire, n, basicLogin('guess', String(n)));
      seen.set(status, (seen.get(status) ?? 0) + 1);
      if (n % validEvery > 0) continue;
      valid += 1;
      if ((await ask(wire, n, authorization)) === 200) accepted += 1;
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
  if (accepted !== valid)
    faults.push(`${valid - accepted} logins with valid credentials were refused`);
  const seconds = (performance.now() - startMs) / 1_000;
  return { name, sent: count, refused, limited: tooMany, valid, accepted, seconds, faults };
}
