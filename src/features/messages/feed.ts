/** Reads the log for the readers of the feed. Readers at the same place share rows, bodies and messages. */
import { setImmediate } from 'node:timers/promises';
import type { ConsoleParts } from '../../core/api/listener-slot.ts';
import { pause } from '../../core/cli/io.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import type { MessageRules } from './document.ts';
import { type Events, type StreamLimits, sharedFor } from './event-stream.ts';
import { type MessageSettings, messageUrls } from './formats.ts';
import { createMessageReader, type MessageReader } from './message-reader.ts';

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

export type FeedRequest = MessageRules & MessageSettings;

export type FeedParts = Pick<ConsoleParts, 'notifications' | 'setting' | 'nowUs'>;

/** Returns the function that creates the events after a position. It throws `invalid` for an invalid filter. */
export function createFeedEvents(
  { notifications, setting, nowUs }: FeedParts,
  { frameMs }: Pick<StreamLimits, 'frameMs'>,
): (request: FeedRequest, afterPosition: number) => Events {
  const share = createShared(sharedBytesMax);
  const pace = createPace();
  const lastPosition = sharedFor(frameMs, () => notifications.lastPosition());
  const pageAfter = (position: number, last: number) =>
    share(
      `page ${position} ${last}`,
      () => readPage(notifications, position, last),
      (rows) => rows.length * rowBytes,
    );
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
    const reader = createMessageReader(request, {
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
          for await (const chunk of chunksOf(rows, reader)) {
            pace.add(chunk.text.length + chunk.rows * rowBytes);
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

function readPage({ find }: NotificationLog, afterPosition: number, last: number) {
  const bounds = { afterPosition, beforePosition: last + 1 };
  return Array.fromAsync(find({ ...bounds, order: 'oldest', limit: pageRowsMax }));
}

/** Yields the events of rows, and the position after each part. */
async function* chunksOf(rows: readonly NotificationRow[], { read }: MessageReader) {
  let chunk = { text: '', rows: 0 };
  for (const row of rows) {
    await setImmediate();
    const { position } = row;
    const message = await read(row);
    chunk.rows += 1;
    if (message !== null) chunk.text += `id: ${position}\ndata: ${message}\n\n`;
    if (chunk.text.length < chunkLength && row !== rows.at(-1)) continue;
    yield { ...chunk, position };
    chunk = { text: '', rows: 0 };
  }
}

type Share = <Value>(
  key: string,
  read: () => Promise<Value>,
  bytesOf: (value: Value) => number,
) => Promise<Value>;

/** Creates the function that reads a value, or returns the one that was read before under the key. Drops the oldest. */
function createShared(bytesMax: number): Share {
  const known = new Map<string, { value: Promise<unknown>; bytes: number }>();
  let bytes = 0;
  const add = <Value>(key: string, value: Promise<Value>, bytesOf: (value: Value) => number) => {
    const entry = { value, bytes: 0 };
    known.set(key, entry);
    const ended = (read: Value) => {
      entry.bytes = bytesOf(read);
      bytes += entry.bytes;
      for (const [oldest, one] of known) {
        if (bytes <= bytesMax) break;
        known.delete(oldest);
        bytes -= one.bytes;
      }
    };
    value.then(ended, () => known.delete(key));
    return value;
  };
  return <Value>(key: string, read: () => Promise<Value>, bytesOf: (value: Value) => number) => {
    const value = known.get(key)?.value as Promise<Value> | undefined;
    return value ?? add(key, read(), bytesOf);
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
