/** Product records of the catalogue: formats, corrected checksums, and a file of records. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Random } from '../clock.ts';
import { SandboxConfigurationError } from '../live-settings.ts';

/** A product record of any origin and age: only Id and Name are guaranteed. */
export interface CatalogueProduct {
  readonly Id: string;
  readonly Name: string;
  readonly [other: string]: unknown;
}

/** Draws a checksum of a number of hexadecimal digits. */
export function drawChecksum(random: Random, Algorithm: string, digits: number, atMs: number) {
  return { Value: random.hex(digits), Algorithm, ChecksumDate: drawTimestamp(random, atMs) };
}

const checksums = z.array(z.looseObject({ Value: z.string(), Algorithm: z.string() }));

/** Returns new checksums of the folder; nothing for a record without them. The archive keeps its own. */
export function correctedChecksums(
  product: CatalogueProduct,
  atMs: number,
  random: Random,
): Pick<CatalogueProduct, string> {
  const known = checksums.safeParse(product.Checksum).data;
  if (known === undefined) return {};
  const Checksum = known.map(({ Algorithm, Value }) =>
    drawChecksum(random, Algorithm, Value.length, atMs - random.integer(200, 3_000)),
  );
  const { Locations } = product;
  if (!Array.isArray(Locations)) return { Checksum };
  const corrected = Locations.map((one) =>
    one?.FormatType === 'Extracted' ? { ...one, Checksum } : one,
  );
  return { Checksum, Locations: corrected };
}

/**
 * Formats ISO 8601 in UTC with six fractional digits, e.g. `2026-01-01T01:16:00.346278Z`.
 * `atMs` is whole ms since 1970; `microseconds` (0 to 999) are added.
 */
export function toTimestamp(atMs: number, microseconds = 0): string {
  return `${new Date(atMs).toISOString().slice(0, -1)}${String(microseconds).padStart(3, '0')}Z`;
}

/** Formats a timestamp with random microseconds. */
export function drawTimestamp(random: Random, atMs: number): string {
  return toTimestamp(atMs, random.integer(0, 999));
}

/** Formats whole seconds without separators, e.g. `20260101T011600`. */
export function toNameTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
}

const recordSchema = z.object({ Id: z.string().min(1), Name: z.string().min(1) });

/**
 * Reads product records from a JSON Lines file; skips blank lines. Throws SandboxConfigurationError
 * for an unreadable or empty file, and for an invalid record.
 */
export function readProductRecords(file: string): CatalogueProduct[] {
  const fail = (problem: string): never => {
    throw new SandboxConfigurationError(`${file}${problem}. Put one product record on each line.`);
  };
  let text = '';
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    fail(` cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  const records = text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return [];
    try {
      const record: CatalogueProduct = JSON.parse(line);
      recordSchema.parse(record);
      return record;
    } catch {
      return fail(`, line ${index + 1}: not a JSON object with the texts Id and Name`);
    }
  });
  return records.length > 0 ? records : fail(' contains no product records');
}
