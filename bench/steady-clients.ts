/** Clients of the private listener in `bench:steady`: one program that queries in a loop, and a crowd. */
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Requests of a program, a metrics scraper and a browser. */
const loopPaths = [
  '/api/products?limit=50',
  "/api/products?limit=50&count=true&filter=contains(Name,'MSIL2A')",
  '/api/products?limit=50&bbox=5,45,15,53',
  '/api/products?limit=200&record=true',
  "/odata/v1/Products?$top=20&$filter=Collection/Name eq 'SENTINEL-1'",
  '/api/notifications?limit=100',
  '/api/footprints?limit=1000',
  '/api/timeliness',
  '/api/status',
  '/metrics',
  '/',
  '/products',
  '/sinks',
];

/** The largest answers of each kind. */
const crowdPaths = [
  '/api/products?limit=1000&record=true',
  '/api/products?limit=1000&format=csv',
  '/api/products?limit=1000&format=geojson',
  '/odata/v1/Products?$top=1000',
  '/api/footprints?limit=10000',
  '/api/notifications?limit=1000',
  '/api/timeliness',
  '/products',
  '/map',
  '/',
];

/** Pause between two queries of the loop. */
const loopPauseMs = 250;
/** Pause after another answer than 200, much shorter than Retry-After. */
const refusedPauseMs = 250;

/** Answers by status, and their latency. `broken`: connections that ended without an answer. */
export interface ClientFigures {
  readonly statuses: Readonly<Record<string, number>>;
  readonly latencyMs: readonly number[];
}

export interface Clients {
  /** Answers so far. */
  readonly figures: ClientFigures;
  stop(): void;
}

/** Queries one answer after the other, with a pause, and keeps one live stream open. */
export function startQueryLoop(url: string): Clients {
  const clients = startClients(url, { count: 1, paths: loopPaths, pauseMs: loopPauseMs });
  const stream = get(`${url}/api/live`, (answer) => answer.resume().on('error', () => undefined));
  stream.on('error', () => undefined);
  return {
    figures: clients.figures,
    stop: () => {
      stream.destroy();
      clients.stop();
    },
  };
}

/** Requests the largest answers from many clients at once, each without a pause. */
export function startCrowd(url: string, count: number): Clients {
  return startClients(url, { count, paths: crowdPaths, pauseMs: 0 });
}

function startClients(
  url: string,
  { count, paths, pauseMs }: { count: number; paths: readonly string[]; pauseMs: number },
): Clients {
  const agent = new Agent({ keepAlive: true });
  const stopping = new AbortController();
  const { signal } = stopping;
  const statuses: Record<string, number> = {};
  const latencyMs: number[] = [];
  const client = async (first: number) => {
    for (let turn = first; !signal.aborted; turn += 1) {
      const startMs = performance.now();
      const status = await request(`${url}${encodeURI(paths[turn % paths.length] ?? '')}`, agent);
      if (signal.aborted) return;
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === '200') latencyMs.push(performance.now() - startMs);
      const waitMs = status === '200' ? pauseMs : refusedPauseMs;
      await delay(waitMs, undefined, { signal }).catch(() => undefined);
    }
  };
  for (let index = 0; index < count; index += 1) void client(index);
  return {
    figures: { statuses, latencyMs },
    stop: () => {
      stopping.abort();
      agent.destroy();
    },
  };
}

/** Reads an answer to its end without keeping it. */
function request(url: string, agent: Agent): Promise<string> {
  return new Promise((resolve) => {
    const broken = () => resolve('broken');
    get(url, { agent, headers: { 'accept-encoding': 'gzip' } }, (answer) => {
      answer.resume().on('error', broken);
      answer.on('end', () => resolve(String(answer.statusCode)));
    }).on('error', broken);
  });
}
