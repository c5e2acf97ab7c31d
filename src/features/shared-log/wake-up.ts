/** Announces new entries to the other nodes. Polling replaces every message that gets lost. */
import { errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { Connections } from './connection.ts';

const channel = 'earshot_log';

/** Interval of messages: each takes a lock that all databases of the server share. */
const announceMs = 250;

/** Interval of attempts to listen again. */
const reconnectMs = 5_000;

export interface WakeUp {
  /** Announces a new entry to all nodes. Never rejects; not before the append is committed. */
  announce(): void;
  /** Resolves at the next message, after the time, or when the signal is aborted. */
  next(timeoutMs: number, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

export function createWakeUp(connections: Connections, log: Logger): WakeUp {
  const waiting = new Set<() => void>();
  /** A message has arrived while nobody waited, perhaps during a read that missed the entry. */
  let isPending = false;
  const wake = () => {
    isPending = waiting.size === 0;
    for (const one of waiting) one();
  };
  const listening = listen(connections, wake, log);
  let announcing: NodeJS.Timeout | undefined;
  let sent: Promise<unknown> = Promise.resolve();
  return {
    announce: () => {
      wake();
      announcing ??= setTimeout(() => {
        announcing = undefined;
        sent = connections.query(`NOTIFY ${channel}`).catch((error: unknown) => {
          log.debug({ reason: errorText(error) }, 'failed to announce a new entry');
        });
      }, announceMs).unref();
    },
    next: (timeoutMs, signal) => {
      if (signal.aborted || isPending) {
        isPending = false;
        return Promise.resolve();
      }
      return new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, timeoutMs);
        signal.addEventListener('abort', done, { once: true });
        waiting.add(done);
      });
    },
    close: async () => {
      clearTimeout(announcing);
      await sent;
      await listening.close();
      wake();
    },
  };
}

/** Keeps a connection that listens. */
function listen(connections: Connections, wake: () => void, log: Logger) {
  let retry: NodeJS.Timeout | undefined;
  let isClosed = false;
  const again = () => {
    if (isClosed) return;
    clearTimeout(retry);
    retry = setTimeout(start, reconnectMs).unref();
  };
  const open = async () => {
    const isListening = await connections.listen(channel, { onMessage: wake, onEnd: again });
    if (!isListening) log.debug({}, 'a pooler passes no messages on; polling for new entries');
  };
  const start = () => {
    opening = open().catch((error: unknown) => {
      log.debug({ reason: errorText(error) }, 'failed to listen for new entries');
      again();
    });
  };
  let opening: Promise<void> = Promise.resolve();
  start();
  return {
    /** The connection ends with all others. */
    close: async () => {
      isClosed = true;
      clearTimeout(retry);
      await opening;
    },
  };
}
