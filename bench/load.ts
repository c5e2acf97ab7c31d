/**
 * Load generator, a separate process: reads a job, keeps connections busy, prints a result. To use less processor time
 * than the measured servers, it sends prebuilt requests and parses only the necessary parts of an answer.
 */
import { cpus } from 'node:os';
import { createHistogram, performance } from 'node:perf_hooks';
import { json } from 'node:stream/consumers';
import { connect } from 'node:tls';
import { ackIdOf, createBodyTemplates, productIdOf, writeIds } from './notifications.ts';
import { readCpuMs } from './processes.ts';

/** Job: one JSON object on standard input. */
export interface LoadJob {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** Certificate authority of the server's certificate, PEM. */
  readonly authorityPem: string;
  readonly username: string;
  readonly password: string;
  readonly connections: number;
  /** Number of distinct bodies sent in turn, at least one per connection. */
  readonly templateCount: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Requests per second of all connections; undefined: as many as possible. */
  readonly ratePerSecond?: number | undefined;
  /** 0 to 65,535; makes the ids of this run unique. */
  readonly run: number;
  /** Process whose processor time is measured in addition to the generator's. */
  readonly serverProcessId: number;
}

/** First and last sequence number of a contiguous range, both included. */
export type SequenceRange = readonly [first: number, last: number];

/** Result: one JSON object on standard output. */
export interface LoadResult {
  /** Answers of any status per second of measured time. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Number of answers by status, including the warm-up. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Number of broken connections by reason, including the warm-up. */
  readonly breaks: Readonly<Record<string, number>>;
  /** Processor time of the generator / measured time: 1 is one core. */
  readonly generatorCores: number;
  /** The same for the server; null without /proc. */
  readonly serverCores: number | null;
  /** The same for all other processes, which distort the figures. */
  readonly otherCores: number | null;
  /** Sequence numbers answered with 200, including the warm-up. */
  readonly answered: readonly SequenceRange[];
}

/** Timeout for requests in flight at the end, ms. */
const lastAnswersMs = 10_000;
const reconnectDelayMs = 100;

/** Runs one job. Throws if requests in flight at the end time out. */
async function runLoad(job: LoadJob): Promise<LoadResult> {
  const builders = createRequestBuilders(job);
  const tally = createTally(job);
  const nextDueMs = createPace(job);
  let next = 0;
  const work = builders.map((build) => {
    let sequence = -1;
    let sentMs = 0;
    let dueMs: number | undefined;
    return keepBusy(job, {
      pauseMs() {
        dueMs ??= nextDueMs();
        return Math.min(dueMs, tally.endMs) - performance.now();
      },
      nextRequest() {
        const nowMs = performance.now();
        if (nowMs >= tally.endMs) return undefined;
        // With a rate, an answer that delays later requests counts for them, too.
        sentMs = job.ratePerSecond === undefined ? nowMs : (dueMs ?? nowMs);
        dueMs = undefined;
        sequence = next++;
        return build(sequence);
      },
      onAnswer: (status) => tally.onAnswer(sequence, status, sentMs),
      onBreak: tally.onBreak,
    });
  });
  const answerTimeout = setTimeout(
    () => {
      throw new Error('requests in flight at the end were not answered in time');
    },
    job.warmUpMs + job.measureMs + lastAnswersMs,
  );
  await Promise.all(work);
  clearTimeout(answerTimeout);
  return tally.result();
}

/** Returns a function that returns the time of the next request of all connections: at the rate, or immediately. */
function createPace({ ratePerSecond }: LoadJob): () => number {
  if (ratePerSecond === undefined) return () => 0;
  const startMs = performance.now();
  let turn = 0;
  return () => startMs + (turn++ * 1_000) / ratePerSecond;
}

/**
 * Returns a request builder for each connection. Requests are built once and patched in place; connections share no
 * buffer.
 */
function createRequestBuilders(job: LoadJob): ((sequence: number) => Buffer)[] {
  const credentials = Buffer.from(`${job.username}:${job.password}`).toString('base64');
  const prepared = createBodyTemplates(job.templateCount).map((template) => {
    const head = [
      `POST ${job.path} HTTP/1.1`,
      `Host: ${job.host}:${job.port}`,
      `Authorization: Basic ${credentials}`,
      'Content-Type: application/json',
      `Content-Length: ${template.bytes.length}`,
      '\r\n',
    ].join('\r\n');
    const bytes = Buffer.concat([Buffer.from(head), template.bytes]);
    return { bytes, bodyStart: head.length, template };
  });
  return Array.from({ length: job.connections }, (_, connection) => {
    const own = prepared.filter((_one, index) => index % job.connections === connection);
    return (sequence) => {
      const one = own[sequence % own.length];
      if (one === undefined) throw new Error(`connection ${connection} has no template`);
      writeIds(one.bytes, one.bodyStart, one.template, {
        ackId: ackIdOf(job.run, sequence),
        productId: productIdOf(job.run, sequence),
      });
      return one.bytes;
    };
  });
}

/** Callbacks of a connection. */
interface ConnectionEvents {
  /** Returns the time until the next request; not positive: immediately. */
  pauseMs(): number;
  /** Returns the next request, unchanged until its answer; undefined to stop. */
  nextRequest(): Buffer | undefined;
  onAnswer(status: number): void;
  /** Called when the connection breaks. Returns true to reconnect. */
  onBreak(reason: string): boolean;
}

/**
 * Keeps one TLS connection busy, with one request in flight, until `nextRequest` returns undefined. Resolves
 * when it is closed.
 */
function keepBusy(job: LoadJob, events: ConnectionEvents): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const open = () => {
    const { host, port, authorityPem: ca } = job;
    const socket = connect({ host, port, ca, servername: 'localhost' });
    let pending: Buffer | undefined;
    let isFinished = false;
    let isClosing = false;
    let reason = 'closed by the server';
    const send = () => {
      if (socket.destroyed) return;
      const pauseMs = events.pauseMs();
      if (pauseMs > 0) {
        setTimeout(send, pauseMs);
        return;
      }
      const request = events.nextRequest();
      if (request !== undefined) {
        socket.write(request);
        return;
      }
      isFinished = true;
      socket.end();
    };
    socket.setNoDelay(true);
    socket.on('secureConnect', send);
    socket.on('data', (chunk) => {
      try {
        const bytes = pending === undefined ? chunk : Buffer.concat([pending, chunk]);
        const answer = readAnswer(bytes);
        pending = answer === undefined ? bytes : undefined;
        if (answer === undefined) return;
        events.onAnswer(answer.status);
        if (answer.closes) isClosing = true;
        else send();
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on('error', (error) => {
      reason = error.message;
    });
    socket.on('close', () => {
      if (!isFinished && (isClosing || events.onBreak(reason))) {
        setTimeout(open, reconnectDelayMs);
      } else resolve();
    });
  };
  open();
  return promise;
}

const contentLengthPattern = /\r\ncontent-length: *(\d+)/i;
const closePattern = /\r\nconnection: *close/i;

/**
 * Returns the status of a complete HTTP/1.1 answer, and whether the server closes the connection; undefined if it is
 * incomplete. Throws for bytes after the body, and for an answer with a body but no Content-Length.
 */
function readAnswer(bytes: Buffer): { status: number; closes: boolean } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const status = Number(head.slice(9, 12));
  if (!head.startsWith('HTTP/1.1 ') || !Number.isInteger(status)) {
    throw new Error(`not an HTTP/1.1 status line: ${head.slice(0, 40)}`);
  }
  const isBodiless = status === 204 || status === 304;
  const bodyBytes = isBodiless ? 0 : Number(contentLengthPattern.exec(head)?.[1]);
  if (Number.isNaN(bodyBytes)) throw new Error('answer without Content-Length');
  const missing = headEnd + 4 + bodyBytes - bytes.length;
  if (missing < 0) throw new Error('more bytes than one answer');
  return missing > 0 ? undefined : { status, closes: closePattern.test(head) };
}

/** Counts answers and measures their latency from the end of the warm-up to the end of the run. */
function createTally(job: LoadJob) {
  const measureFromMs = performance.now() + job.warmUpMs;
  const endMs = measureFromMs + job.measureMs;
  const latencyUs = createHistogram({ lowest: 1, highest: 60_000_000, figures: 3 });
  const statuses: Record<string, number> = {};
  const breaks: Record<string, number> = {};
  const answered: number[] = [];
  let measuredAnswers = 0;
  const cores = watchCores(job);
  return {
    endMs,
    onAnswer(sequence: number, status: number, sentMs: number) {
      const nowMs = performance.now();
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 200) answered.push(sequence);
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
      answered: rangesOf(answered),
    }),
  };
}

function rangesOf(sequences: readonly number[]): SequenceRange[] {
  const ranges: [first: number, last: number][] = [];
  for (const sequence of Uint32Array.from(sequences).sort()) {
    const range = ranges.at(-1);
    if (range !== undefined && range[1] === sequence - 1) range[1] = sequence;
    else ranges.push([sequence, sequence]);
  }
  return ranges;
}

/** Reads processor times at the start and end of the measured time. The returned function returns the shares. */
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

/** Returns the processor time of all programs and the system on all cores, ms. */
function allCpuMs(): number {
  return cpus().reduce(
    (sum, { times }) => sum + times.user + times.nice + times.sys + times.irq,
    0,
  );
}

// Not validated: the parent process is the only sender.
const job = (await json(process.stdin)) as LoadJob;
process.stdout.write(JSON.stringify(await runLoad(job)));
