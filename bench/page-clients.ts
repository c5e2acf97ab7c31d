/**
 * Programs that request what the open pages `/`, `/live` and `/map` request. They show the cost for the receiver
 * without that of a browser on the same machine.
 */
import { Agent, get, type IncomingMessage } from 'node:http';

/** Times of `shell.ts` and `map.ts` in the browser. */
const checkMs = 250;
const leastMs = 1_000;

/** Starts the three programs. The returned function ends them. */
export function openClients(url: string): () => void {
  const agent = new Agent({ keepAlive: true });
  let indexed = 0;
  const streams = [
    follow(`${url}/api/live?rows=0`, agent),
    follow(`${url}/api/live`, agent),
    follow(`${url}/api/live?rows=0`, agent, (position) => {
      indexed = position;
    }),
  ];
  const overview = repeat(() => request(`${url}/`, agent), 10);
  let shown = 0;
  const map = repeat(async () => {
    const from = shown;
    shown = indexed;
    await request(`${url}/api/footprints?after=${from}&limit=1000`, agent);
  }, 0);
  return () => {
    for (const timer of [overview, map]) clearInterval(timer);
    for (const stream of streams) stream.destroy();
    agent.destroy();
  };
}

/** Reads a stream. Calls `onPosition` with the position of the index in each frame. */
function follow(
  url: string,
  agent: Agent,
  onPosition: (position: number) => void = () => undefined,
) {
  const outgoing = get(url, { agent }, (answer) => {
    answer.setEncoding('latin1');
    answer.on('data', (text: string) => {
      const position = /"indexedPosition":(\d+)/.exec(text)?.[1];
      if (position !== undefined) onPosition(Number(position));
    });
    answer.on('error', () => undefined);
  });
  outgoing.on('error', () => undefined);
  return outgoing;
}

/** Repeats a request with a pause that grows with its duration. */
function repeat(work: () => Promise<void>, pauseShare: number): NodeJS.Timeout {
  let earliestMs = 0;
  let isRunning = false;
  return setInterval(() => {
    const startMs = performance.now();
    if (isRunning || startMs < earliestMs) return;
    isRunning = true;
    void work().finally(() => {
      const endMs = performance.now();
      earliestMs = endMs + Math.max(leastMs, pauseShare * (endMs - startMs));
      isRunning = false;
    });
  }, checkMs);
}

/** Reads an answer without decompressing it. A failure counts like an answer: the next request shows whether it stays. */
function request(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const done = () => resolve();
    const read = (answer: IncomingMessage) => answer.resume().on('end', done).on('error', done);
    get(url, { agent, headers: { 'accept-encoding': 'gzip' } }, read).on('error', done);
  });
}
