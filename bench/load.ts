/** The load generator, a process of its own: reads a job, keeps connections busy, prints a result. */
import { cpus } from 'node:os';
import { createHistogram, performance } from 'node:perf_hooks';
import { json } from 'node:stream/consumers';
import { createAnsweredSet } from './answered-ranges.ts';
import { createBodyTemplates } from './bodies.ts';
import { keepBusy } from './load-connection.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { readCpuMs } from './process-status.ts';
import { createRequestSource } from './request-source.ts';

/** Time that requests in flight at the end may take before the generator gives up, ms. */
const lastAnswersMs = 10_000;

/** Runs one job to its end. Rejects when nothing could be sent at all. */
export async function runLoad(job: LoadJob): Promise<LoadResult> {
  const templates = createBodyTemplates(job.ackIdForm, job.templateCount);
  const source = createRequestSource(job, templates);
  const tally = createTally(job);
  const work = Array.from({ length: job.connections }, (_, connection) => {
    let sequence = -1;
    let sentMs = 0;
    return keepBusy(job, {
      nextRequest() {
        sentMs = performance.now();
        if (sentMs >= tally.endMs) return undefined;
        sequence = source.nextSequence();
        return source.request(connection, sequence);
      },
      onAnswer: (status) => tally.onAnswer(sequence, status, sentMs),
      onBreak: (reason) => tally.onBreak(reason),
    });
  });
  const tooLate = setTimeout(
    () => {
      throw new Error('requests in flight at the end were never answered');
    },
    job.warmUpMs + job.measureMs + lastAnswersMs,
  );
  await Promise.all(work);
  clearTimeout(tooLate);
  return tally.result();
}

/** Counts answers and their latency between the end of the warm-up and the end of the run. */
function createTally(job: LoadJob) {
  const startMs = performance.now();
  const measureFromMs = startMs + job.warmUpMs;
  const endMs = measureFromMs + job.measureMs;
  const latencyUs = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  const statuses: Record<string, number> = {};
  const breaks: Record<string, number> = {};
  const answered = createAnsweredSet();
  let measuredAnswers = 0;
  const cores = watchCores(job);
  return {
    endMs,
    onAnswer(sequence: number, status: number, sentMs: number) {
      const nowMs = performance.now();
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 200) answered.add(sequence);
      if (nowMs < measureFromMs || nowMs > endMs) return;
      measuredAnswers += 1;
      latencyUs.record(Math.max(1, Math.round((nowMs - sentMs) * 1_000)));
    },
    onBreak(reason: string) {
      breaks[reason] = (breaks[reason] ?? 0) + 1;
      return performance.now() < endMs;
    },
    result: (): LoadResult => ({
      requestsPerSecond: (measuredAnswers * 1_000) / job.measureMs,
      p50Ms: latencyUs.percentile(50) / 1_000,
      p99Ms: latencyUs.percentile(99) / 1_000,
      maxMs: latencyUs.max / 1_000,
      statuses,
      breaks,
      ...cores(),
      answered: answered.ranges(),
    }),
  };
}

/** Reads processor times at both ends of the measured time; the returned function tells the shares. */
function watchCores(job: LoadJob) {
  const read = () => {
    const { user, system } = process.cpuUsage();
    return {
      wallMs: performance.now(),
      ownMs: (user + system) / 1_000,
      serverMs: readCpuMs(job.serverProcessId) ?? Number.NaN,
      allMs: allCpuMs(),
    };
  };
  let before = read();
  let after = before;
  setTimeout(() => {
    before = read();
  }, job.warmUpMs);
  setTimeout(() => {
    after = read();
  }, job.warmUpMs + job.measureMs);
  return () => {
    const wallMs = after.wallMs - before.wallMs;
    const ownMs = after.ownMs - before.ownMs;
    const serverMs = after.serverMs - before.serverMs;
    const otherMs = Math.max(0, after.allMs - before.allMs - ownMs - serverMs);
    return {
      generatorCores: ownMs / wallMs,
      serverCores: Number.isNaN(serverMs) ? null : serverMs / wallMs,
      otherCores: Number.isNaN(otherMs) ? null : otherMs / wallMs,
    };
  };
}

/** Processor time that all programs and the system have used on all cores, ms. */
function allCpuMs(): number {
  return cpus().reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.irq,
    0,
  );
}

if (process.argv[1] === import.meta.filename) {
  // The job comes from this program's own parent, in this program's own format.
  const job = (await json(process.stdin)) as LoadJob;
  process.stdout.write(JSON.stringify(await runLoad(job)));
}
