/** The content of an entry of the shared log: deliveries with their parsed notifications, recovered events, or changes. */

import { AppError } from '../../core/terms/app-error.ts';
import type { DriftShape, Fault, Notification } from '../../core/terms/notification.ts';
import type { Delivery } from '../../core/terms/ports.ts';
import type { MissingEvent } from '../../core/terms/subscription.ts';
import { compress, decompress } from '../../store/bodies/bodies.ts';

/** A delivery as it was parsed by the node that received it, so that all versions of earshot write the same. */
export interface EntryDelivery
  extends Pick<Delivery, 'receivedAtUs' | 'subscription' | 'source' | 'headers'> {
  body: Uint8Array;
  /** Content-Encoding; null without one. */
  encoding: string | null;
  notifications: EntryNotification[];
  faults: readonly Fault[];
  drift: readonly DriftShape[];
  /** Set when a quarantined body is read again: it is released. */
  retry: { quarantineId: number; atUs: number } | null;
}

export interface EntryNotification extends Notification {
  /** Hexadecimal. */
  key: string;
  subscriptionKey: string | null;
  recoveredUs: number | null;
}

/** An operation of the store with its arguments. */
export interface Change {
  op: string;
  args: readonly unknown[];
}

export type EntryContent =
  | { kind: 'deliveries'; deliveries: EntryDelivery[] }
  | { kind: 'recovered'; events: MissingEvent[]; atUs: number }
  | { kind: 'changes'; changes: Change[] }
  | CopiedRows;

/** Rows of a log that was copied into the shared log. */
export interface CopiedRows {
  kind: 'rows';
  /** New rows, by their columns. `body_id` refers to `bodies`. */
  rows: Record<string, unknown>[];
  bodies: { id: number; bytes: Uint8Array; encoding: string | null }[];
  /** Rows that have changed since they were copied. */
  changed: Record<string, unknown>[];
}

/** Maximum size before compression: a body has at most 1 MiB, and each of its notifications adds some hundred bytes. */
const rawBytesMax = 256 * 2 ** 20;

/** Size of the bodies and rows after which a part of a copy or checkpoint ends. */
export const partBytesMax = 4 * 2 ** 20;

const lengthBytes = 4;

/** Raised with each change after which other versions would apply an entry differently. */
const format = 1;

/** The fastest useful zstd level. */
const level = 1;

export const encodeEntry = (content: EntryContent) => encodeContent({ ...content, format });

/** Encodes a content: the length of its JSON, the JSON, and all byte arrays of it, compressed. Throws if it is too large. */
export function encodeContent(content: object): { encoding: string; bytes: Buffer } {
  const parts: Uint8Array[] = [];
  const json = Buffer.from(toJson(content, parts));
  const head = Buffer.alloc(lengthBytes);
  head.writeUInt32LE(json.length);
  const raw = Buffer.concat([head, json, ...parts]);
  if (raw.length > rawBytesMax) throw new Error('An entry is too large.');
  return compress(raw, level);
}

/**
 * Decodes an entry, which `encodeEntry` has written. Throws `unavailable` for one of a newer version: a node must not
 * apply it differently.
 */
export function decodeEntry(encoded: { encoding: string; bytes: Uint8Array }): EntryContent {
  const { format: written, ...content } = decodeContent(encoded) as EntryContent & {
    format: number;
  };
  if (written <= format) return content as EntryContent;
  throw newerEntry();
}

export function newerEntry(): AppError {
  return new AppError(
    'unavailable',
    'The shared log contains an entry of a newer version of earshot.',
    { advice: 'Install the newer version on this receiver, too.' },
  );
}

/** Decodes what `encodeContent` has written. */
export function decodeContent(encoded: { encoding: string; bytes: Uint8Array }): unknown {
  const raw = decompress(encoded, rawBytesMax);
  const end = lengthBytes + raw.readUInt32LE(0);
  return fromJson(raw.toString('utf8', lengthBytes, end), raw.subarray(end));
}

/** Replaces byte arrays by `{"$bytes": length}`; their bytes follow in the same order. */
export function toJson(value: unknown, parts: Uint8Array[]): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, plain: unknown) {
    // Before `Buffer.toJSON`.
    const original = this[key];
    if (!(original instanceof Uint8Array)) return plain;
    parts.push(original);
    return { $bytes: original.length };
  });
}

export function fromJson(json: string, bytes: Uint8Array): unknown {
  let start = 0;
  return inOrder(JSON.parse(json));

  // Not a reviver, which would visit inner values first.
  function inOrder(value: unknown): unknown {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map(inOrder);
    if ('$bytes' in value && Object.keys(value).length === 1) {
      const end = start + Number(value.$bytes);
      const part = bytes.subarray(start, end);
      start = end;
      return part;
    }
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inOrder(one)]));
  }
}
