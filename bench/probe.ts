/** How long a readiness probe waits, at rest and while another process scans the whole log. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { createHistogram } from 'node:perf_hooks';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from './cleanup.ts';
import type { Endpoint } from './endpoint.ts';
import { getStatus } from './get-status.ts';
import { earshotEnvironment, projectFolder } from './servers.ts';

/** Latency of the probe's requests. */
export interface ProbeFigures {
  readonly requests: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Requests that got another answer than 200, or none. */
  readonly failures: number;
}

const probeIntervalMs = 5;

/**
 * Sends GET /notifications every 5 ms over one connection for `durationMs`. A request that had to
 * wait for the one before it counts from the moment it was due, so that one long stall is not
 * hidden by the requests it held back.
 */
export async function probe(
  endpoint: Endpoint,
  port: number,
  durationMs: number,
): Promise<ProbeFigures> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const latencyUs = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  let failures = 0;
  const send = async () => {
    const dueMs = performance.now();
    const status = await getStatus({ ...endpoint, port, path: '/notifications', agent });
    latencyUs.record(Math.max(1, Math.round((performance.now() - dueMs) * 1_000)));
    if (status !== 200) failures += 1;
  };
  try {
    // The first request pays for the handshake, which is not what is measured.
    await getStatus({ ...endpoint, port, path: '/notifications', agent });
    const inFlight: Promise<void>[] = [];
    const timer = setInterval(() => inFlight.push(send()), probeIntervalMs);
    await delay(durationMs);
    clearInterval(timer);
    await Promise.all(inFlight);
  } finally {
    agent.destroy();
  }
  return {
    requests: latencyUs.count,
    p50Ms: latencyUs.percentile(50) / 1_000,
    p99Ms: latencyUs.percentile(99) / 1_000,
    maxMs: latencyUs.max / 1_000,
    failures,
  };
}

/** A query that reads the whole log again and again in other processes. */
export interface RepeatedScan {
  /** Ends it; returns how many scans ran to their end. Rejects when one failed. */
  stop(): Promise<number>;
}

/** Starts the scans: `earshot query` for a name that no product has. */
export function startScans(
  endpoint: Endpoint,
  dataFolder: string,
  port: number,
  cleanup: Cleanup,
): RepeatedScan {
  const args = ['scripts/earshot.js', 'query', '--name', '*no-such-product*'];
  args.push('--limit', '1', '--output', 'ndjson');
  const env = earshotEnvironment(endpoint, dataFolder, port);
  let current: ChildProcess | undefined;
  let stopped = false;
  const scanAgainAndAgain = async () => {
    for (let scans = 0; ; scans += 1) {
      if (stopped) return scans;
      const child = spawn(process.execPath, args, { cwd: projectFolder(), env });
      current = child;
      cleanup.ownProcess(child);
      const [errors, output, [exitCode]] = await Promise.all([
        text(child.stderr),
        text(child.stdout),
        once(child, 'exit'),
      ]);
      if (stopped) return scans;
      if (exitCode !== 0) throw new Error(`the query failed:\n${errors}`);
      if (output !== '') throw new Error(`the query found what should not exist:\n${output}`);
    }
  };
  const done = scanAgainAndAgain();
  // Without a listener of its own, a failure before `stop` would end the whole program.
  done.catch(() => {});
  return {
    stop() {
      stopped = true;
      current?.kill('SIGKILL');
      return done;
    },
  };
}
