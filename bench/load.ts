/**
 * The load generator, a process of its own: reads a job, keeps connections busy, prints a result. It must take less
 * than the servers that it measures, so it writes prebuilt requests and reads no more of an answer than it needs.
 */
import { cpus } from 'node:os';
import { createHistogram, performance } from 'node:perf_hooks';
import { json } from 'node:stream/consumers';
import { connect } from 'node:tls';
import {
  type AckIdForm,
  ackIdOf,
  createBodyTemplates,
  productIdOf,
  writeIds,
} from './notifications.ts';
import { readCpuMs } from './processes.ts';

/** One JSON object on the generator's standard input. */
export interface LoadJob {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** PEM of the authority that signed the server's certificate. */
  readonly authorityPem: string;
  readonly username: string;
  readonly password: string;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  /** Different bodies that are sent in turn, at least one for each connection. */
  readonly templateCount: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** 0 to 65,535; makes the ids of this run unlike those of any other. */
  readonly run: number;
  /** Whose processor time is read beside the generator's own. */
  readonly serverProcessId: number;
}

/** First and last sequence number of a run without a hole, both included. */
export type SequenceRange = readonly [first: number, last: number];

/** One JSON object on the generator's standard output. */
export interface LoadResult {
  /** Answers of any status within the measured time, per second. */
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  /** Number of answers by status, warm-up included. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Number of broken connections by reason, warm-up included. */
  readonly breaks: Readonly<Record<string, number>>;
  /** Processor time of the generator over wall time while measuring: 1 is one core. */
  readonly generatorCores: number;
  /** The same of the server; null where /proc does not tell it. */
  readonly serverCores: number | null;
  /** The same of everything else on the machine; more than a little spoils the figures. */
  readonly otherCores: number | null;
  /** Sequence numbers that were answered with 200, warm-up included. */
  readonly answered: readonly SequenceRange[];
}

/** Time that requests in flight at the end may take before the generator gives up, ms. */
const lastAnswersMs = 10_000;
const reconnectDelayMs = 100;

/** Runs one job to its end. Rejects when nothing could be sent at all. */
async function runLoad(job: LoadJob): Promise<LoadResult> {
  const hands = dealRequests(job);
  const tally = createTally(job);
  let next = 0;
  const work = hands.map((hand) => {
    let sequence = -1;
    let sentMs = 0;
    return keepBusy(job, {
      nextRequest() {
        sentMs = performance.now();
        if (sentMs >= tally.endMs) return undefined;
        sequence = next++;
        return hand(sequence);
      },
      onAnswer: (status) => tally.onAnswer(sequence, status, sentMs),
      onBreak: tally.onBreak,
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

/**
 * For each connection what gives the bytes of a request: built once, and patched in place before each use. No two
 * connections share a buffer.
 */
function dealRequests(job: LoadJob): ((sequence: number) => Buffer)[] {
  const credentials = Buffer.from(`${job.username}:${job.password}`).toString('base64');
  const prepared = createBodyTemplates(job.ackIdForm, job.templateCount).map((template) => {
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
    const hand = prepared.filter((_one, index) => index % job.connections === connection);
    return (sequence) => {
      const one = hand[sequence % hand.length];
      if (one === undefined) throw new Error(`connection ${connection} has no template`);
      writeIds(one.bytes, one.bodyStart, one.template, {
        ackId: ackIdOf(job.ackIdForm, job.run, sequence),
        productId: productIdOf(job.run, sequence),
      });
      return one.bytes;
    };
  });
}

/** What the owner of a connection decides and learns. */
interface ConnectionEvents {
  /** The next request's bytes, not changed again until its answer; undefined to send no more. */
  nextRequest(): Buffer | undefined;
  onAnswer(status: number): void;
  /** The connection broke; a request in flight has no answer. Returns whether to connect again. */
  onBreak(reason: string): boolean;
}

/**
 * Keeps one keep-alive TLS connection busy, with one request in flight, until `nextRequest` has no more. Resolves
 * when it has been closed.
 */
function keepBusy(job: LoadJob, events: ConnectionEvents): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const open = () => {
    const { host, port, authorityPem: ca } = job;
    const socket = connect({ host, port, ca, servername: 'localhost' });
    let pending: Buffer | undefined;
    let isFinished = false;
    let isClosedPolitely = false;
    let reason = 'closed by the server';
    const send = () => {
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
        if (answer.closes) isClosedPolitely = true;
        else send();
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    });
    socket.on('error', (error) => {
      reason = error.message;
    });
    socket.on('close', () => {
      if (!isFinished && (isClosedPolitely || events.onBreak(reason))) {
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
 * The status of an HTTP/1.1 answer once its whole body has arrived, else undefined, and whether the server closes
 * the connection after it. One request is in flight at a time: bytes after the body are an error, and so is an answer
 * with neither Content-Length nor a status that has no body.
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

/** Counts answers and their latency between the end of the warm-up and the end of the run. */
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

// The job comes from this program's own parent, in this program's own format.
const job = (await json(process.stdin)) as LoadJob;
process.stdout.write(JSON.stringify(await runLoad(job)));
