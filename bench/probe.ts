/** How long a readiness probe waits, at rest and while another process scans the whole log. */
import { spawn } from 'node:child_process';
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

/**
 * Runs its arguments as a command again and again, and prints how many lines each time gave. A shell
 * does so, because starting a process stops this one for some milliseconds, and it is the one that
 * measures.
 */
const repeat = 'while true; do "$@" | wc -l; done';

/** Starts the scans: `earshot query` for every row there is, from the oldest to the newest. */
export function startScans(
  endpoint: Endpoint,
  dataFolder: string,
  port: number,
  cleanup: Cleanup,
): RepeatedScan {
  const query = ['scripts/earshot.js', 'query', '--order', 'oldest', '--output', 'ndjson'];
  const child = spawn('/bin/sh', ['-c', repeat, 'repeat', process.execPath, ...query], {
    cwd: projectFolder(),
    env: earshotEnvironment(endpoint, dataFolder, port),
    // A process group of its own, so that the query ends together with the shell.
    detached: true,
  });
  cleanup.ownProcess(child);
  const output = Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return {
    async stop() {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      const [lines, errors] = await output;
      if (errors !== '') throw new Error(`the query failed:\n${errors}`);
      const counts = lines.split('\n').filter((line) => line !== '');
      return counts.length;
    },
  };
}
