/** Sends one request at a time, their starts well apart, and counts what that takes. */
import type { OutboundAnswer, OutboundClient, OutboundRequest } from '../http/outbound-client.ts';

/** How time passes. */
export interface Time {
  nowMs: () => number;
  /** Ends early, without an error, when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

export interface Spent {
  requests: number;
  /** Waiting for answers. */
  answersMs: number;
  /** Waiting between requests. */
  waitedMs: number;
}

export interface PacedRequests {
  /** Waits for its turn. Rejects as the client does, and with the signal's reason. */
  send(request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer>;
  /** Rejects with the signal's reason. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  spent(): Spent;
}

export function createPacedRequests(options: {
  client: OutboundClient;
  requestsPerMinute: number;
  time: Time;
}): PacedRequests {
  const { client, time } = options;
  const intervalMs = 60_000 / options.requestsPerMinute;
  const spent = { requests: 0, answersMs: 0, waitedMs: 0 };
  let startedMs: number | null = null;
  let turn = Promise.resolve();

  async function wait(ms: number, signal: AbortSignal) {
    signal.throwIfAborted();
    if (ms <= 0) return;
    const sinceMs = time.nowMs();
    await time.pause(ms, signal);
    spent.waitedMs += time.nowMs() - sinceMs;
    signal.throwIfAborted();
  }

  async function sendNow(request: OutboundRequest, signal: AbortSignal) {
    const restMs = startedMs === null ? 0 : startedMs + intervalMs - time.nowMs();
    // No longer than that when the clock was put back.
    await wait(Math.ceil(Math.min(restMs, intervalMs)), signal);
    const sinceMs = time.nowMs();
    startedMs = sinceMs;
    spent.requests += 1;
    try {
      return await client({ ...request, signal });
    } finally {
      spent.answersMs += time.nowMs() - sinceMs;
    }
  }

  return {
    send: (request, signal) => {
      const answer = turn.then(() => sendNow(request, signal));
      turn = answer.then(
        () => undefined,
        () => undefined,
      );
      return answer;
    },
    wait,
    spent: () => ({ ...spent }),
  };
}
