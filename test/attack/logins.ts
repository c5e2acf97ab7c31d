/** `npm run attack -- logins`: failed logins of thousands of addresses, spellings of one, and lies about them. */
import { alignTable, figure, megabytes } from '../../bench/figures.ts';
import { type Benchmark, dirOption, integer } from '../../bench/harness.ts';
import { basicLogin, request, stranger } from './case.ts';
import { openWire, playCase, type Wire } from './play-case.ts';
import { startTarget, type Target, takeEvidence, watchUse } from './target.ts';
import { judgePublicAnswer } from './verdicts.ts';

const options = {
  addresses: integer('N', 'different ones', { default: 20_000, min: 1, max: 10_000_000 }),
  dir: dirOption,
};

/** What is remembered of addresses is bounded, so more of them take no more memory. */
const grownBytesMax = 150e6;

const four = (n: number) => `${11 + (n >> 24)}.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

const hex = (n: number) => n.toString(16);

/** One address of one /64, spelled in another way each time. */
const spellings: readonly ((n: number) => string)[] = [
  (n) => `2001:db8:0:0:0:0:0:${hex(n + 1)}`,
  (n) => `2001:DB8::${hex(n + 1).toUpperCase()}`,
  (n) => `[2001:0db8:0000:0000:0000:0000:0000:${hex(n + 1).padStart(4, '0')}]:${1_024 + n}`,
  (n) => `2001:db8::1:${hex(n)}`,
  (n) => `2001:db8::${four(n)}`,
];

/** Each of one kind; of the last ones so many must be limited. */
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
    name: 'one IPv6 network, spelled',
    count: 1_000,
    from: (n) => (spellings[n % spellings.length] ?? four)(n),
    limited: 900,
  },
  {
    name: 'one IPv4, as IPv6',
    count: 1_000,
    from: (n) => (n % 2 === 0 ? '198.51.100.9' : '::ffff:198.51.100.9'),
    limited: 900,
  },
  // What stands left of what the proxy wrote is the client's own word.
  {
    name: 'lies before the truth',
    count: 1_000,
    from: (n) => `${four(n)}, 192.0.2.1`,
    limited: 900,
  },
  // From a peer that is no trusted proxy the header is not read at all.
  {
    ...{ name: 'lies without a proxy', count: 1_000, from: four, limited: 900 },
    localAddress: '127.0.0.9',
  },
];

export const logins: Benchmark<typeof options> = {
  command: 'npm run attack -- logins',
  about: `Fails to log in at an \`earshot start\` of its own on loopback, from many addresses (told by a proxy that is
trusted), from one, from one IPv6 network in all its spellings, and with lies about the address. The right
credentials must be let in all the while, from limited addresses as well.`,
  options,
  closing: 'Exit code: 0 as it should be, 1 not, 2 wrong usage.',
  async measure({ addresses }, { cleanup, progress, folder: parentFolder }) {
    const startMs = performance.now();
    const environment = { EARSHOT_TRUSTED_PROXIES: '127.0.0.1' };
    const target = await startTarget({ cleanup, parentFolder, isPlain: true, environment });
    const watched = watchUse(target.processId);
    const phases: LoginPhase[] = [];
    for (const phase of phasesOf(addresses)) {
      progress.show(phase.name);
      phases.push(await runLoginPhase(target, phase));
    }
    const memory = watched.stop();
    const seconds = (performance.now() - startMs) / 1_000;
    const { loginLines, harms: found } = await takeEvidence(target, [], { seconds });
    const grownBytes = memory.peakBytes - memory.startBytes;
    const harms = [
      ...phases.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)),
      ...(grownBytes > grownBytesMax ? [`memory grew by ${megabytes(grownBytes)} MB`] : []),
      ...found,
    ];
    return {
      report: { phases, memory, loginLines, harms },
      text: [
        renderPhases(phases),
        `Memory: ${megabytes(memory.startBytes)} MB at the start, ${megabytes(memory.peakBytes)} MB at most. Lines in the log: ${loginLines}.`,
        harms.length === 0
          ? 'All as it should be.'
          : `${harms.length} faults:\n${harms.slice(0, 30).join('\n')}`,
      ],
      hasFailed: harms.length > 0,
    };
  },
};

function renderPhases(phases: readonly LoginPhase[]): string {
  const head = ['failed logins from', 'sent', '401', '429', 'right ones', 'let in', 'seconds'];
  const rows = phases.map(({ name, sent, refused, limited, right, authorize, seconds }) => [
    name,
    ...[sent, refused, limited, right, authorize, seconds].map((value) => figure(value)),
  ]);
  return alignTable([head, ...rows]);
}

interface LoginPhaseOptions {
  readonly name: string;
  readonly count: number;
  /** What `X-Forwarded-For` says in number `n`. */
  readonly from: (n: number) => string;
  /** How many must be answered with 429; the others with 401. */
  readonly limited: number;
  /** Where they really come from; 127.0.0.1 is the trusted proxy. */
  readonly localAddress?: string;
}

interface LoginPhase {
  readonly name: string;
  readonly sent: number;
  readonly refused: number;
  readonly limited: number;
  /** Right credentials, and how many of them were let in. */
  readonly right: number;
  readonly authorize: number;
  readonly seconds: number;
  readonly faults: readonly string[];
}

const connectionCount = 8;
const rightEvery = 20;

/** To be over within the minute in which failures are counted together, unless it is about many addresses. */
async function runLoginPhase(
  { public: address, right: rightLogin }: Target,
  { name, count, from, limited, localAddress }: LoginPhaseOptions,
): Promise<LoginPhase> {
  const startMs = performance.now();
  const seen = new Map<number, number>();
  const faults: string[] = [];
  let [next, right, authorize] = [0, 0, 0];

  async function ask(wire: Wire, n: number, login: string): Promise<number> {
    const headers = [`Authorization: ${login}`, `X-Forwarded-For: ${from(n)}`];
    const pieces = [request({ method: 'GET', target: '/notifications', headers })];
    const asked = stranger(name, pieces, [200, 401, 429]);
    const played = await playCase(wire, asked, judgePublicAnswer);
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
      if (n % rightEvery > 0) continue;
      right += 1;
      if ((await ask(wire, n, rightLogin)) === 200) authorize += 1;
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
  if (authorize !== right)
    faults.push(`${right - authorize} with the right credentials were not let in`);
  const seconds = (performance.now() - startMs) / 1_000;
  return { name, sent: count, refused, limited: tooMany, right, authorize, seconds, faults };
}
