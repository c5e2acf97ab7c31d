/** Runs commands in this process: captured streams, a fixed clock, a stop switch. */
import { randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { app } from '../../src/app.ts';
import type { Io } from '../../src/core/cli/io.ts';
import { run } from '../../src/core/cli/run.ts';
import type { Feature } from '../../src/core/feature.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { settings } from './settings.ts';

/** 2026-05-02T12:00:00Z, the time at which every command of these tests runs. */
export const nowUs = Date.UTC(2026, 4, 2, 12) * 1000;
export const version = '9.8.7-test';

/** Answer of a user who presses Ctrl-C. */
export const ctrlC = '\u0003';

export interface FakeIoOptions {
  env?: Record<string, string>;
  /** Simulates a terminal on both streams, of this width. */
  isTTY?: boolean;
  columns?: number;
  /** The user stops the command after it has written this number of chunks to stdout. */
  stopAfterChunks?: number;
  /** The user's answers, one per question; without them there is no terminal to ask on. */
  answers?: string[];
  /** Folder in which `earshot.config.ts` is searched; by default one without that file. */
  workingDir?: string;
  nowUs?: () => number;
  fetch?: typeof fetch;
  /** Features of the program; by default its own. */
  features?: readonly Feature[];
}

/** Output of a finished command, and its exit code. */
export interface Ended {
  code: number;
  out: string;
  err: string;
  outBytes: Buffer;
}

/** A running command. */
export interface Running {
  /** Output on stdout up to now. */
  out(): string;
  /** Output on stderr up to now. */
  err(): string;
  stop(): void;
  ended: Promise<Ended>;
}

/** Arguments of a command line; a string is split at blanks. */
export type Words = string | readonly string[];

export const wordsOf = (argv: Words): readonly string[] =>
  typeof argv === 'string' ? argv.split(' ') : argv;

const nowhere = { write: () => true, once: () => undefined };

/** Ports of a program without a terminal. */
export function testIo(changes: Partial<Io> = {}): Io {
  return {
    ...{ stdout: nowhere, stderr: nowhere, env: {}, workingDir: import.meta.dirname },
    readFile: (path) => readFileSync(path, 'utf8'),
    nowUs: () => nowUs,
    newId: randomUUID,
    newSecret: () => randomBytes(32).toString('base64url'),
    random: () => 0.5,
    fetch,
    pid: process.pid,
    features: app,
    settings,
    ask: async () => null,
    signal: new AbortController().signal,
    exit: () => undefined,
    ...changes,
  };
}

/** Starts a command. */
export function startCommand(argv: Words, options: FakeIoOptions = {}): Running {
  const { env = {}, isTTY, columns } = options;
  const stopping = new AbortController();
  const stdout = createStream({
    isTTY,
    columns,
    // A command waits before it writes more, so that any number of rows needs little memory.
    slowReader: true,
    onChunk: (count) => {
      if (count === options.stopAfterChunks) stopping.abort('test');
    },
  });
  const stderr = createStream({ isTTY, columns });
  const { nowUs: clock = () => nowUs, fetch: send = fetch } = options;
  const { workingDir = import.meta.dirname, features = app } = options;
  const io = testIo({
    stdout: stdout.output,
    stderr: stderr.output,
    ...{ env, nowUs: clock, fetch: send, workingDir, features },
    ask: async (question: string) => {
      if (options.answers === undefined) return null;
      stderr.output.write(`${question}\n`);
      const answer = options.answers.shift() ?? '';
      if (answer === ctrlC) throw new AppError('cancelled', 'Cancelled at the prompt.');
      return answer;
    },
    signal: stopping.signal,
  });
  const ended = run(wordsOf(argv), io, version).then((code) => {
    const outBytes = stdout.bytes();
    return { code, outBytes, out: outBytes.toString(), err: stderr.bytes().toString() };
  });
  const text = ({ bytes }: { bytes: () => Buffer }) => bytes().toString();
  return {
    out: () => text(stdout),
    err: () => text(stderr),
    stop: () => stopping.abort('test'),
    ended,
  };
}

/** Returns the questions in the output of a command. */
export function promptsIn(err: string): string[] {
  return err.split('\n').filter((line) => line.endsWith(': '));
}

/** Runs a command to its end. */
export function runCommand(argv: Words, options?: FakeIoOptions): Promise<Ended> {
  return startCommand(argv, options).ended;
}

type Printed = Pick<Ended, 'out' | 'err'> & { code: number | null };

/** Expects this exit code, and this text on stderr. */
export async function expectEnd<Finished extends Printed>(
  ended: Promise<Finished>,
  code: number,
  err: RegExp | string = '',
): Promise<Finished> {
  const all = await ended;
  expect(all, all.err).toMatchObject({ code });
  expect(all.err).toMatch(err);
  return all;
}

/** Like expectEnd, for a command that prints no data: by default a usage error. Returns all of stderr. */
export async function expectRefusal(
  ended: Promise<Printed>,
  reason: RegExp | string,
  code = 2,
): Promise<string> {
  const { out, err } = await expectEnd(ended, code, reason);
  expect(out).toBe('');
  return err;
}

/** Returns the output of a command that succeeds and prints nothing on stderr. */
export async function printed(ended: Promise<Printed>): Promise<string> {
  const { code, out, err } = await ended;
  expect({ code, err }).toEqual({ code: 0, err: '' });
  return out;
}

/** Returns the JSON document that a command prints, whatever its exit code. */
export async function printedJson(ended: Promise<Printed>) {
  return JSON.parse((await ended).out);
}

/** Creates an output that keeps what is written; `onChunk` gets the number of chunks. */
export function createStream(options: {
  isTTY?: boolean | undefined;
  columns?: number | undefined;
  /** Accepts a few chunks at a time. */
  slowReader?: boolean;
  onChunk?: (count: number) => void;
}) {
  const { isTTY, columns, slowReader = false, onChunk } = options;
  const chunks: Buffer[] = [];
  const emitter = new EventEmitter();
  let unread = 0;
  const write = (chunk: string | Uint8Array) => {
    // A help has several chunks.
    if (unread > 5) throw new Error('Written before the reader was ready for more.');
    const count = chunks.push(Buffer.from(chunk));
    onChunk?.(count);
    if (!slowReader) return true;
    unread += 1;
    setImmediate(() => {
      unread = 0;
      emitter.emit('drain');
    });
    return false;
  };
  const once = (event: 'drain', listener: () => void) => emitter.once(event, listener);
  return { output: { write, once, isTTY, columns }, bytes: () => Buffer.concat(chunks) };
}
