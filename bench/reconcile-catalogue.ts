/** The sandbox with a past, as a process of its own, and its side of the door: when it was asked for lists. */
import { type ChildProcess, fork } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import type { Cleanup } from './harness.ts';

/** What the past is made of. */
export interface CataloguePast {
  readonly days: number;
  readonly productsPerDay: number;
  readonly modifiedShare: number;
  readonly deletedShare: number;
}

/** One request for a list; times in ms of one clock. */
export interface AskedList {
  readonly startMs: number;
  /** Null when no answer left. */
  readonly endMs: number | null;
}

export interface Catalogue {
  readonly url: string;
  /** When the past began, ms since 1970. */
  readonly sinceMs: number;
  /** Making the past. */
  readonly generatedMs: number;
  readonly holdings: { readonly products: number; readonly deletedProducts: number };
  /** What was asked since this was called last. */
  asked(): Promise<AskedList[]>;
  stop(): void;
}

type Started = Pick<Catalogue, 'url' | 'sinceMs' | 'generatedMs' | 'holdings'>;
type FromChild = { started: Started } | { asked: AskedList[] } | { failed: string };

/** Resolves when the past is there: some 0.1 ms for each product. */
export async function startCatalogue(past: CataloguePast, cleanup: Cleanup): Promise<Catalogue> {
  const child = fork(import.meta.filename, [JSON.stringify(past)], { execArgv: [] });
  cleanup.ownProcess(child);
  const first = await nextMessage(child);
  if (!('started' in first)) throw new Error('failed' in first ? first.failed : 'out of turn');
  return {
    ...first.started,
    asked: async () => {
      child.send('asked');
      const answer = await nextMessage(child);
      if (!('asked' in answer)) throw new Error('The sandbox did not tell what it was asked.');
      return answer.asked;
    },
    stop: () => void child.kill('SIGKILL'),
  };
}

function nextMessage(child: ChildProcess): Promise<FromChild> {
  return new Promise((resolve, reject) => {
    const onExit = (code: number | null) => reject(new Error(`The sandbox ended (${code}).`));
    child.once('exit', onExit);
    child.once('message', (message: FromChild) => {
      child.off('exit', onExit);
      resolve(message);
    });
  });
}

/** Node tells of every request that any server of this process takes: the sandbox itself is left alone. */
function watchLists(): AskedList[] {
  const asked: { startMs: number; endMs: number | null }[] = [];
  const open = new WeakMap<object, { startMs: number; endMs: number | null }>();
  type Exchange = { request: IncomingMessage; response: ServerResponse };
  subscribe('http.server.request.start', (message) => {
    const { request, response } = message as Exchange;
    if (!/^\/odata\/v1\/(Deleted)?Products\?/.test(request.url ?? '')) return;
    const entry = { startMs: performance.now(), endMs: null };
    asked.push(entry);
    open.set(response, entry);
  });
  subscribe('http.server.response.finish', (message) => {
    const entry = open.get((message as Exchange).response);
    if (entry !== undefined) entry.endMs = performance.now();
  });
  return asked;
}

async function serve(past: CataloguePast): Promise<void> {
  const tell = (message: FromChild) => void process.send?.(message);
  const asked = watchLists();
  const startedMs = performance.now();
  const sinceMs = Date.now() - past.days * 86_400_000;
  const { days, productsPerDay, modifiedShare, deletedShare } = past;
  const sandbox = await startSandbox({
    ...{ now: Date.now, count: 0, modifiedShare, deletedShare },
    past: { durationMs: days * 86_400_000, productsPerDay },
  });
  process.on('message', () => tell({ asked: asked.splice(0) }));
  const generatedMs = performance.now() - startedMs;
  const { catalogueUrl: url } = sandbox;
  tell({ started: { url, sinceMs, generatedMs, holdings: sandbox.holdings() } });
}

if (process.argv[1] === import.meta.filename) {
  process.on('disconnect', () => process.exit());
  try {
    // The past comes from this program's own parent.
    await serve(JSON.parse(process.argv[2] ?? '') as CataloguePast);
  } catch (error) {
    process.send?.({ failed: String(error) });
  }
}
