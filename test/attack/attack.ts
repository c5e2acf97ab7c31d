/**
 * An attack on a receiver with a small heap, a process of its own, while valid notifications are pushed: each must be
 * answered in time, and be in the log once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { quantile, renderTable } from '../../bench/figures.ts';
import type { BenchContext, Outcome } from '../../bench/harness.ts';
import { watchMemory } from '../../bench/processes.ts';
import { createEndpoint, type RunningServer, startServer } from '../../bench/servers.ts';
import { openStoreReader } from '../helpers/store.ts';
import { basicLogin, validPush } from './requests.ts';
import { type Address, openWire, playPush, type Wire } from './wire.ts';

export interface Target extends RunningServer {
  readonly address: Address;
  /** Valid Authorization value. */
  readonly authorization: string;
  readonly dataFolder: string;
}

const heapMegabytes = 512;

/** Starts a receiver, over HTTPS or, as behind a proxy, over HTTP. Rejects with the end of its log when it does not start. */
export async function startTarget(
  { cleanup, folder }: BenchContext,
  isPlain = false,
): Promise<Target> {
  const dataFolder = cleanup.temporaryFolder(folder);
  const endpoint = await createEndpoint(dataFolder);
  const plain = { EARSHOT_TLS: 'off', EARSHOT_TLS_CERT: undefined, EARSHOT_TLS_KEY: undefined };
  const heap = { NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}` };
  const environment = { ...heap, ...(isPlain ? plain : {}) };
  const server = await startServer('earshot', { endpoint, dataFolder, cleanup, environment });
  const { username, password, authorityPem } = endpoint;
  const address = { port: server.port, ...(isPlain ? {} : { authorityPem }) };
  return { ...server, address, dataFolder, authorization: basicLogin(username, password) };
}

/** Figures by title. */
type Row = Readonly<Record<string, string | number | null>>;

/** Result of an attack. */
export interface Attacked {
  readonly rows: readonly Row[];
  readonly harms: readonly string[];
  /** AckIds of further pushes that were answered. */
  readonly acknowledged: readonly string[];
}

const pushesPerSecond = 20;
/** Measured: 450 MB, regardless of the duration; more indicates a leak. */
const peakBytesMax = 700e6;

/** Starts the receiver, attacks it, and returns what the attack found, its pushes, and all harms. */
export async function attackReceiver(
  context: BenchContext,
  { isPlain, p99MaxMs }: { isPlain?: boolean; p99MaxMs: number },
  attack: (target: Target) => Promise<Attacked>,
) {
  const startMs = performance.now();
  const target = await startTarget(context, isPlain);
  const watched = watchMemory(target.processId, 200);
  const pushing = startPushes(target, { kind: 'kept', perSecond: pushesPerSecond });
  const attacked = await attack(target);
  const { acknowledged, failures, ...figures } = await pushing.stop();
  const peakBytes = watched.stop().at(-1)?.peakResidentBytes ?? 0;
  const seconds = (performance.now() - startMs) / 1_000;
  const answered = [...acknowledged, ...attacked.acknowledged];
  const { found, harms } = await readStore(target.dataFolder);
  const missing = answered.filter((ackId) => found.get(ackId) !== 1);
  await target.stop().catch((error) => harms.push(String(error)));
  const lines = target.log().split('\n').slice(0, -1);
  const bad = lines.filter((line) => !/^\{"level":"(debug|info|warn)"/.test(line));
  const pushes: Row = {
    ...{ ...figures, failed: failures.length, stored: answered.length - missing.length },
    ...{ peakMegabytes: Math.round(peakBytes / 1e6), logLines: lines.length, seconds },
  };
  return {
    ...{ rows: attacked.rows, pushes },
    harms: [
      ...attacked.harms,
      ...failures.map((failure) => `a push: ${failure}`),
      ...((figures.p99Ms ?? 0) > p99MaxMs ? [`p99 of pushes: ${figures.p99Ms} ms`] : []),
      ...(peakBytes > peakBytesMax ? [`memory: ${peakBytes} bytes`] : []),
      ...missing.map((ackId) => `an answered push is not in the log once: ${ackId}`),
      ...harms,
      ...bad.slice(0, 20).map((line) => `in its log: ${line.slice(0, 500)}`),
    ],
  };
}

/** Returns the outcome of attacks for the report. */
export function outcomeOf(attacks: readonly Awaited<ReturnType<typeof attackReceiver>>[]): Outcome {
  const rows = attacks.flatMap((one) => one.rows);
  const pushes = attacks.map((one) => one.pushes);
  const tables = [rows, pushes].map((all) =>
    renderTable(
      all,
      Object.keys(all[0] ?? {}).map((title) => [title, (row) => row[title] ?? null]),
    ),
  );
  return {
    setting: `a heap of ${heapMegabytes} MB, ${pushesPerSecond} pushes a second`,
    figures: { rows, pushes },
    text: tables,
    faults: attacks.flatMap(({ harms }) => harms),
  };
}

/** Counts each AckId in the log. Harms are entries and quarantined bodies of unknown clients. */
async function readStore(dataFolder: string) {
  const reader = openStoreReader(dataFolder);
  const found = new Map<string | null, number>();
  const harms: string[] = [];
  try {
    for await (const { ackId } of reader.find({})) {
      found.set(ackId, (found.get(ackId) ?? 0) + 1);
      if (ackId?.startsWith('unknownClient')) harms.push(`stored for an unknown client: ${ackId}`);
    }
    for await (const { id } of reader.quarantined({})) {
      const { body } = await reader.quarantineEntry(id);
      if (Buffer.from(body).includes('"unknownClient-')) harms.push(`unknown client's body ${id}`);
    }
  } finally {
    await reader.close();
  }
  return { found, harms };
}

let runs = 0;

/**
 * Starts valid pushes, on one connection or on a new one for each. Times are in ms, from the start of each push to its
 * complete answer, including the connection.
 */
export function startPushes(
  { address, authorization }: Target,
  { perSecond, kind }: { perSecond: number; kind: 'kept' | 'fresh' },
) {
  const stopper = new AbortController();
  const { signal } = stopper;
  const [acknowledged, failures, tookMs]: [string[], string[], number[]] = [[], [], []];
  // Each run has its own ids.
  runs += 1;
  const first = runs * 10_000_000;
  const push = async (kept: Wire | null, index: number): Promise<Wire | null> => {
    const startMs = performance.now();
    const sent = validPush({ seed: 0, index, authorization }, true);
    const wire = kept === null || kept.hasEnded ? await openWire(address) : kept;
    const { harm } = await playPush(wire, sent);
    if (harm === null) acknowledged.push(sent.ackId);
    else failures.push(harm);
    tookMs.push(performance.now() - startMs);
    if (harm === null && kind === 'kept') return wire;
    wire.close();
    return null;
  };
  const run = async () => {
    const startMs = performance.now();
    let wire: Wire | null = null;
    for (let number = 0; !signal.aborted; number += 1) {
      wire = await push(wire, first + number).catch((error) => {
        failures.push(String(error));
        return null;
      });
      // A delayed push does not delay the following ones permanently.
      const waitMs = startMs + ((number + 1) * 1_000) / perSecond - performance.now();
      await delay(Math.max(0, waitMs), undefined, { signal }).catch(() => undefined);
    }
    wire?.close();
  };
  const running = run();
  return {
    stop: async () => {
      stopper.abort();
      await running;
      const at = (share: number) => quantile(tookMs, share);
      const times = { p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
      return { answered: acknowledged.length, ...times, acknowledged, failures };
    },
  };
}
