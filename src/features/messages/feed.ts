/** Reads the log for the readers of the feed. Readers at the same place share rows, bodies and messages. */
import { setImmediate } from 'node:timers/promises';
import type { ConsoleParts } from '../../core/api/listener-slot.ts';
import { pause } from '../../core/cli/io.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import type { MessageRules } from './document.ts';
import { type Events, type StreamLimits, sharedFor } from './event-stream.ts';
import { type MessageSettings, messageUrls } from './formats.ts';
import { createMessageReader, type ReadMessage } from './message-reader.ts';

/** Maximum number of rows in one reading of the log. */
const pageRowsMax = 100;

/** Length from which events are sent without waiting for the rest of a page. */
const chunkLength = 64 * 1024;

/** Memory of rows, bodies and messages that readers share. */
const sharedBytesMax = 8 * 2 ** 20;

/**
 * Maximum number of bytes that are read and sent each second for all readers together. While this thread is busy, it is
 * low, so that intake is not delayed.
 */
const bytesPerSecond = { usual: 32 * 2 ** 20, busy: 4 * 2 ** 20 };

/** Share of its time in which a busy thread works. */
const busyShare = 0.5;

/** Interval at which this share is measured. */
const measureMs = 250;

/** Size of a row in these limits. */
const rowBytes = 500;

export type FeedParts = Pick<ConsoleParts, 'notifications' | 'setting' | 'nowUs'>;

/** Returns the function that creates the events after a position. It throws `invalid` for an invalid filter. */
export function createFeedEvents(
  { notifications, setting, nowUs }: FeedParts,
  { frameMs }: Pick<StreamLimits, 'frameMs'>,
): (request: MessageRules & MessageSettings, afterPosition: number) => Events {
  const share = createShared(sharedBytesMax);
  const pace = createPace();
  const lastPosition = sharedFor(frameMs, () => notifications.lastPosition());
  const pageAfter = (afterPosition: number, last: number) => {
    const bounds = { afterPosition, beforePosition: last + 1 };
    const rows = () =>
      Array.fromAsync(notifications.find({ ...bounds, order: 'oldest', limit: pageRowsMax }));
    return share(`page ${afterPosition} ${last}`, rows, ({ length }) => length * rowBytes);
  };
  const log = {
    body: async (position: number) => {
      const read = () => notifications.body(position);
      const body = await share(`body ${position}`, read, ({ length }) => length);
      pace.add(body.length);
      return body;
    },
  };
  return (request, afterPosition) => {
    const [catalogueUrl, publicUrl] = [setting('catalogueUrl'), setting('publicUrl')];
    const urls = messageUrls({ catalogueUrl, publicUrl, console: setting('console') });
    const read = createMessageReader(request, {
      ...{ log, urls, nowUs },
      share: (key, write) => share(key, write, ({ length }) => 2 * length),
    });
    let position = afterPosition;
    return {
      idle: () => `id: ${position}\n\n`,
      read: async function* (signal) {
        const last = await lastPosition();
        while (position < last && !signal.aborted) {
          const rows = await pageAfter(position, last);
          pace.add(rows.length * rowBytes);
          for await (const chunk of chunksOf(rows, read)) {
            pace.add(chunk.text.length);
            await pace.wait(signal);
            position = chunk.position;
            yield chunk.text === '' ? null : chunk.text;
          }
          if (rows.length < pageRowsMax) position = last;
        }
      },
    };
  };
}

/** Yields the events of rows, and the position after each part. */
async function* chunksOf(rows: readonly NotificationRow[], read: ReadMessage) {
  let text = '';
  for (const row of rows) {
    await setImmediate();
    const { position } = row;
    const message = await read(row);
    if (message !== null) text += `id: ${position}\ndata: ${message}\n\n`;
    if (text.length < chunkLength && row !== rows.at(-1)) continue;
    yield { text, position };
    text = '';
  }
}

/** Creates the function that reads a value, or returns the one that was read before under the key. Drops the oldest. */
function createShared(bytesMax: number) {
  const known = new Map<string, { value: Promise<unknown>; bytes: number }>();
  let bytes = 0;
  const dropOldest = () => {
    for (const [key, one] of known) {
      if (bytes <= bytesMax) break;
      known.delete(key);
      bytes -= one.bytes;
    }
  };
  return <Value>(key: string, read: () => Promise<Value>, bytesOf: (value: Value) => number) => {
    const before = known.get(key);
    if (before !== undefined) return before.value as Promise<Value>;
    const value = read();
    const entry = { value, bytes: 0 };
    known.set(key, entry);
    const ended = (result: Value) => {
      if (known.get(key) !== entry) return;
      entry.bytes = bytesOf(result);
      bytes += entry.bytes;
      dropOldest();
    };
    value.then(ended, () => known.delete(key));
    return value;
  };
}

/** Limits the bytes per second of all readers. */
function createPace() {
  let freeAtMs = 0;
  let perSecond = bytesPerSecond.usual;
  let measuredAtMs = 0;
  let measured = performance.eventLoopUtilization();
  const measure = (nowMs: number) => {
    if (nowMs - measuredAtMs < measureMs) return;
    const before = measured;
    measured = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(measured, before);
    perSecond = bytesPerSecond[utilization > busyShare ? 'busy' : 'usual'];
    measuredAtMs = nowMs;
  };
  return {
    add: (bytes: number) => {
      const nowMs = performance.now();
      measure(nowMs);
      freeAtMs = Math.max(freeAtMs, nowMs) + (1_000 * bytes) / perSecond;
    },
    wait: (signal: AbortSignal) => pause(Math.max(0, freeAtMs - performance.now()), signal),
  };
}
