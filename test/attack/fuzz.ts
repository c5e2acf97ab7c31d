/** `npm run attack -- fuzz`: many requests over HTTPS and HTTP, with valid pushes among them. */
import { randomBytes } from 'node:crypto';
import { defineBenchmark, integer, optionalInteger } from '../../bench/harness.ts';
import { type Attacked, attackReceiver, outcomeOf, type Target } from './attack.ts';
import { httpCases } from './http-cases.ts';
import { drawCase, randomOf, validPush } from './requests.ts';
import { openWire, type Played, playCase, playPush, type Wire } from './wire.ts';

const listeners = ['https', 'plain'] as const;

/** Ten times the usual limit of 250 ms, for busy machines. */
const p99MaxMs = 2_500;

export const benchmark = defineBenchmark({
  command: 'npm run attack -- fuzz',
  about: `Sends malformed, hostile and unusual requests to its own \`earshot start\` on loopback, with valid
pushes among them, over HTTPS and plain HTTP; then checks its store and log.
The same seed sends the same bytes.`,
  options: {
    requests: integer('requests, a fifth of them over plain HTTP', 100_000, 5_000),
    seed: optionalInteger('(default: random)'),
    connections: integer('parallel connections', 24),
  },
  async measure({ requests, connections, ...chosen }, context) {
    const seed = chosen.seed ?? randomBytes(4).readUInt32LE();
    const attacks = [];
    for (const listener of listeners) {
      const isPlain = listener === 'plain';
      const count = Math.floor(requests * (isPlain ? 0.2 : 0.8));
      const onCase = (index: number) => context.progress.show(`${listener}: ${index}`);
      const run = { seed, connections, count, onCase };
      const attacked = await attackReceiver(context, { isPlain, p99MaxMs }, (target) =>
        fuzz(target, run),
      );
      const rows = attacked.rows.map((row) => ({ listener, ...row }));
      const harms = attacked.harms.map((harm) => `${listener}, ${harm}`);
      attacks.push({ ...attacked, rows, harms });
    }
    return outcomeOf(attacks);
  },
});

interface FuzzOptions {
  readonly seed: number;
  /** Number of cases. */
  readonly count: number;
  readonly connections: number;
  readonly onCase: (index: number) => void;
}

const casesPerConnectionMax = 100;

/** Number of cases after which a valid push is sent on a new connection. */
const pushEvery = 25;

/** Maximum number of harms; then the run stops. */
const harmsMax = 25;

/** Runs the cases on parallel connections. */
async function fuzz(
  { address, authorization }: Target,
  { seed, count, connections, onCase }: FuzzOptions,
): Promise<Attacked> {
  const [harms, acknowledged]: [string[], string[]] = [[], []];
  const statuses: Record<string, number> = {};
  let next = 0;
  const note = (name: string, pieces: readonly Buffer[], { harm, answers }: Played) => {
    for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
    if (harm === null) return;
    const sent = pieces.map((bytes) => JSON.stringify(bytes.toString('latin1', 0, 3_000)));
    harms.push([`${name}: ${harm}`, ...sent, JSON.stringify(answers).slice(0, 2_000)].join('\n  '));
  };
  const push = async (wire: Wire, index: number, after: string) => {
    const sent = validPush({ seed, index, authorization });
    const played = await playPush(wire, sent);
    if (played.harm === null) acknowledged.push(sent.ackId);
    note(`valid push ${index} (${sent.name}) after ${after}`, sent.pieces, played);
    return played.harm === null && played.isOpen;
  };
  const worker = async (_: unknown, number: number) => {
    let wire: Wire | null = null;
    for (let uses = 0; next < count && harms.length < harmsMax; ) {
      const index = next;
      next += 1;
      onCase(index);
      const random = randomOf(~seed, index);
      const played = drawCase(httpCases, { seed, index, authorization });
      const isForeign = played.connection === 'foreign';
      if (isForeign && address.authorityPem === undefined) continue;
      if (wire === null || isForeign) {
        wire?.close();
        const localAddress = `127.0.${number % 4}.${random.integer(1, 250)}`;
        wire = await openWire(isForeign ? { port: address.port } : address, localAddress);
        uses = 0;
        // Negative numbers, which no case has.
        if (!isForeign && index % pushEvery === 0) {
          await push(wire, -1 - index, 'nothing');
        }
      }
      const result = await playCase(wire, played);
      note(`case ${index} (${played.name})`, played.pieces, result);
      let isUsable = result.harm === null && result.isOpen;
      // The next push on the connection must receive its own answer, and be stored.
      if (isUsable && random.chance(0.3)) {
        isUsable = await push(wire, index, played.name);
      }
      uses += 1;
      if (isUsable && uses < casesPerConnectionMax) continue;
      wire.close();
      wire = null;
    }
    wire?.close();
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const pushes = acknowledged.length;
  const answers = JSON.stringify(statuses);
  const rows = [{ seed, requests: next, pushes, answers }];
  return { rows, harms, acknowledged };
}
