/** Failed logins from command line to verdict: thousands of addresses, spellings of one, and lies about them. */
import { tmpdir } from 'node:os';
import type { Cleanup } from '../cleanup.ts';
import { integerOf, readFlags } from '../option-values.ts';
import type { Progress } from '../progress.ts';
import type { Measurement } from '../run-measurement.ts';
import { alignTable, figure, megabytes } from '../table.ts';
import { takeEvidence } from './evidence.ts';
import { type LoginPhase, runLoginPhase } from './login-phase.ts';
import { type MemoryUse, watchMemory } from './memory-watch.ts';
import { startTarget } from './target.ts';

interface LoginOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly addresses: number;
  readonly folder: string;
}

interface LoginReport {
  readonly phases: readonly LoginPhase[];
  readonly memory: MemoryUse;
  /** Lines about failed logins in the log. */
  readonly loginLines: number;
  readonly harms: readonly string[];
}

const helpText = `Usage: npm run attack -- logins [options]

Fails to log in at an \`earshot start\` of its own on loopback, from many addresses (told by a proxy that is
trusted), from one, from one IPv6 network in all its spellings, and with lies about the address. The right
credentials must be let in all the while, from limited addresses as well.

  --addresses N  different ones (20000)
  --dir FOLDER   where the data is written (the system's temporary folder)
  --json         one JSON object instead of a table
  --help         this text

Exit code: 0 as it should be, 1 not, 2 wrong usage.
`;

export const loginMeasurement: Measurement<LoginOptions, LoginReport> = {
  parse: (argv) => {
    const own = { addresses: { type: 'string' }, dir: { type: 'string' } } as const;
    const { help, json, addresses, dir: folder = tmpdir() } = readFlags(argv, own);
    const range = { min: 1, max: 10_000_000 };
    return { help, json, folder, addresses: integerOf('addresses', addresses, 20_000, range) };
  },
  helpText,
  measure: attackLogins,
  render,
  hasFailed: ({ harms }) => harms.length > 0,
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

async function attackLogins(
  { addresses, folder: parentFolder }: LoginOptions,
  _argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<LoginReport> {
  const startMs = performance.now();
  const environment = { EARSHOT_TRUSTED_PROXIES: '127.0.0.1' };
  const target = await startTarget({ cleanup, parentFolder, isPlain: true, environment });
  const memory = watchMemory(target.processId);
  const phases: LoginPhase[] = [];
  const run = async (phase: Parameters<typeof runLoginPhase>[1]) => {
    progress.show(phase.name);
    phases.push(await runLoginPhase(target, phase));
  };
  await run({ name: 'many addresses', count: addresses, from: four, limited: 0 });
  await run({
    name: 'as many IPv6 networks',
    count: addresses,
    from: (n) => `2a00:${hex(n >> 16)}:${hex(n & 0xffff)}:1::${hex(n)}`,
    limited: 0,
  });
  await run({ name: 'one address', count: 1_000, from: () => '203.0.113.7', limited: 900 });
  await run({
    name: 'one IPv6 network, spelled',
    count: 1_000,
    from: (n) => (spellings[n % spellings.length] ?? four)(n),
    limited: 900,
  });
  await run({
    name: 'one IPv4, as IPv6',
    count: 1_000,
    from: (n) => (n % 2 === 0 ? '198.51.100.9' : '::ffff:198.51.100.9'),
    limited: 900,
  });
  // What stands left of what the proxy wrote is the client's own word.
  await run({
    name: 'lies before the truth',
    count: 1_000,
    from: (n) => `${four(n)}, 192.0.2.1`,
    limited: 900,
  });
  // From a peer that is no trusted proxy the header is not read at all.
  await run({
    name: 'lies without a proxy',
    count: 1_000,
    from: four,
    limited: 900,
    localAddress: '127.0.0.9',
  });
  const use = memory.stop();
  const seconds = (performance.now() - startMs) / 1_000;
  const evidence = await takeEvidence(target, [], { seconds });
  const grownBytes = use.peakBytes - use.startBytes;
  const harms = [
    ...phases.flatMap(({ name, faults }) => faults.map((fault) => `${name}: ${fault}`)),
    ...(grownBytes > grownBytesMax ? [`memory grew by ${megabytes(grownBytes)} MB`] : []),
    ...evidence.harms,
  ];
  return { phases, memory: use, loginLines: evidence.loginLines, harms };
}

/** As text, ending with a line break. */
function render({ phases, memory, loginLines, harms }: LoginReport): string {
  const head = ['failed logins from', 'sent', '401', '429', 'right ones', 'let in', 'seconds'];
  const rows = phases.map(({ name, sent, refused, limited, right, letIn, seconds }) => [
    ...[name, figure(sent), figure(refused), figure(limited)],
    ...[figure(right), figure(letIn), figure(seconds)],
  ]);
  const parts = [
    alignTable([head, ...rows]),
    `Memory: ${megabytes(memory.startBytes)} MB at the start, ${megabytes(memory.peakBytes)} MB at most. Lines in the log: ${loginLines}.`,
    harms.length === 0
      ? 'All as it should be.'
      : `${harms.length} faults:\n${harms.slice(0, 30).join('\n')}`,
  ];
  return `${parts.join('\n\n')}\n`;
}
