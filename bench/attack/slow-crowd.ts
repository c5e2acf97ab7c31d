/** A process of its own that keeps thousands of slow connections open: told what on standard input. */
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { openSlow, slowKinds } from './slow-kinds.ts';

/** One JSON object on its standard input. */
export interface SlowCrowd {
  readonly port: number;
  readonly count: number;
  /** Each connection has an address of its own, or all have this one. */
  readonly from: 'many' | `127.${string}`;
  /** Opened per second while the crowd gathers. */
  readonly perSecond: number;
  /** The right Authorization value: all are pushes whose bodies drip. Null for the connections of a stranger. */
  readonly authorization: string | null;
  /** One that was cut off comes back after so long. */
  readonly pauseMs: number;
}

/** One JSON object a second on its standard output. */
export interface CrowdState {
  /** Open now, as far as this side knows. */
  readonly open: number;
  readonly opened: number;
  readonly cut: number;
  /** Every place has been taken once. */
  readonly isComplete: boolean;
}

async function gather(crowd: SlowCrowd): Promise<void> {
  const { port, count, from, perSecond, pauseMs, authorization } = crowd;
  let [open, opened, cut, places] = [0, 0, 0, 0];
  const start = (index: number) => {
    const localAddress = from === 'many' ? addressOf(index) : from;
    const kind = slowKinds[index % slowKinds.length] ?? 'silent';
    opened += 1;
    open += 1;
    const place = { port, localAddress };
    const socket =
      authorization === null
        ? openSlow(kind, place)
        : openSlow('slow push', { ...place, authorization });
    socket.once('close', () => {
      open -= 1;
      cut += 1;
      setTimeout(() => start(index), pauseMs * (0.5 + Math.random()));
    });
  };
  setInterval(() => {
    const state: CrowdState = { open, opened, cut, isComplete: places === count };
    process.stdout.write(`${JSON.stringify(state)}\n`);
  }, 1_000);
  for (; places < count; places += 1) {
    start(places);
    if (places % 10 === 9) await delay(10_000 / perSecond);
  }
}

/** 127.1.0.1 and on: 250 of each last number. */
function addressOf(index: number): string {
  return `127.${1 + Math.floor(index / 62_500)}.${Math.floor(index / 250) % 250}.${1 + (index % 250)}`;
}

await gather((await json(process.stdin)) as SlowCrowd);
