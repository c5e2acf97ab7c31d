/** `npm run attack -- slow`: crowds of slow connections of unknown clients, and one with valid credentials. */
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchContext, defineBenchmark, integer } from '../../bench/harness.ts';
import { attackReceiver, outcomeOf, startPushes, type Target } from './attack.ts';
import type { CrowdState, SlowCrowd } from './slow-crowd.ts';

/** 127.0.0.1 is the source of the pushes: behind a proxy, attackers and the catalogue share an address. */
const crowds: readonly Pick<Crowd, 'name' | 'from' | 'isAuthenticated'>[] = [
  { name: 'one address', from: '127.0.0.2', isAuthenticated: false },
  { name: 'many addresses', from: 'many', isAuthenticated: false },
  { name: 'the address of the pushes', from: '127.0.0.1', isAuthenticated: false },
  { name: 'the same, with credentials', from: '127.0.0.1', isAuthenticated: true },
];

/** Maximum connections of the receiver, so that a push has to displace one of them. */
const authenticatedCount = 1_000;
const p99MaxMs = 5_000;

export const benchmark = defineBenchmark({
  command: 'npm run attack -- slow',
  about: `Keeps thousands of slow connections to its own \`earshot start\` on loopback: silent ones, handshakes and
heads that never end, slow bodies, idle connections, and clients that read nothing. Then 1,000
connections with valid credentials and slow bodies. Closed connections are opened again after a few seconds.
Each valid push sent in the meantime must be answered. Linux only: requires all of 127.0.0.0/8.`,
  options: {
    connections: integer('parallel connections of unknown clients', 5_000, 500),
    seconds: integer('duration of each crowd after its start', 60, 3),
  },
  async measure({ connections, seconds }, context) {
    const attacked = await attackReceiver(context, { p99MaxMs }, async (target) => {
      const ended = [];
      for (const crowd of crowds) {
        const count = crowd.isAuthenticated ? authenticatedCount : connections;
        ended.push(await runCrowd(target, context, { ...crowd, count, ms: seconds * 1_000 }));
      }
      return {
        rows: ended.map(({ row }) => row),
        harms: ended.flatMap(({ row, harms }) => harms.map((harm) => `${row.crowd}: ${harm}`)),
        acknowledged: ended.flatMap(({ acknowledged }) => acknowledged),
      };
    });
    return outcomeOf([attacked]);
  },
});

interface Crowd {
  readonly name: string;
  readonly from: SlowCrowd['from'];
  /** True for a crowd with valid credentials that sends pushes with slow bodies. */
  readonly isAuthenticated: boolean;
  readonly count: number;
  readonly ms: number;
}

const gatherTimeoutMs = 120_000;
const settleTimeoutMs = 90_000;
const calmMsMax = 10_000;
const leftOverMax = 5;

/** Rate of the catalogue in a quiet hour, on one connection that is idle in between. */
const rarePerSecond = 0.25;

async function runCrowd(target: Target, { cleanup, progress }: BenchContext, crowd: Crowd) {
  const { name, ms } = crowd;
  const socketsBefore = openSockets(target.processId);
  const open = () => openSockets(target.processId) - socketsBefore;
  const child = spawn(process.execPath, [join(import.meta.dirname, 'slow-crowd.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  cleanup.ownProcess(child);
  const job: SlowCrowd = {
    ...{ port: target.port, count: crowd.count, from: crowd.from },
    authorization: crowd.isAuthenticated ? target.authorization : null,
    ...{ perSecond: 500, pauseMs: 5_000 },
  };
  child.stdin.end(JSON.stringify(job));
  let state: CrowdState = { opened: 0, cut: 0, isComplete: false };
  createInterface(child.stdout).on('line', (line) => {
    state = JSON.parse(line);
  });
  await until(() => state.isComplete, gatherTimeoutMs, 'the connections were not established');
  const pushing = [
    startPushes(target, { kind: 'fresh', perSecond: 10 }),
    startPushes(target, { kind: 'kept', perSecond: rarePerSecond }),
  ];
  let openMax = 0;
  for (const endMs = performance.now() + ms; performance.now() < endMs; await delay(500)) {
    openMax = Math.max(openMax, open());
    progress.show(`${name}: ${open()} open, ${state.cut} closed`);
  }
  const during = await Promise.all(pushing.map((one) => one.stop()));
  child.kill('SIGKILL');
  // The receiver closes the connections of the crowd.
  const isSettled = () => open() <= leftOverMax;
  const late = await until(isSettled, settleTimeoutMs, 'connections are left over').catch(String);
  const calm = startPushes(target, { kind: 'fresh', perSecond: 10 });
  await delay(Math.min(ms, calmMsMax));
  const after = await calm.stop();
  const { opened, cut } = state;
  const all = [...during, after];
  const p99Ms = Math.max(...during.map((one) => one.p99Ms ?? 0));
  const answered = during.reduce((sum, one) => sum + one.answered, 0);
  return {
    row: { ...{ crowd: name, opened, cut, openMax, answered, p99Ms }, p99AfterMs: after.p99Ms },
    harms: [
      ...all.flatMap(({ failures }) => failures.map((failure) => `a push: ${failure}`)),
      ...(Math.max(p99Ms, after.p99Ms ?? 0) > p99MaxMs ? [`p99 of pushes: ${p99Ms} ms`] : []),
      ...(late === undefined ? [] : [late]),
    ],
    acknowledged: all.flatMap(({ acknowledged }) => acknowledged),
  };
}

/** Waits for a condition. Rejects after a time limit. */
async function until(isMet: () => boolean, timeoutMs: number, problem: string): Promise<void> {
  const giveUpMs = performance.now() + timeoutMs;
  while (!isMet()) {
    if (performance.now() > giveUpMs) throw new Error(problem);
    await delay(100);
  }
}

/** Returns the number of open sockets; 0 on systems without /proc. */
function openSockets(processId: number): number {
  const folder = `/proc/${processId}/fd`;
  return (existsSync(folder) ? readdirSync(folder) : []).filter((file) => {
    try {
      return readlinkSync(join(folder, file)).startsWith('socket:');
    } catch {
      // Closed after the directory was read.
      return false;
    }
  }).length;
}
