/** Reads product records from a file, to be published instead of generated ones. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { SandboxConfigurationError } from '../configuration-error.ts';
import type { CatalogueProduct } from './catalogue-product.ts';

const checksums = z.array(
  z.looseObject({
    Value: z.exactOptional(z.string()),
    Algorithm: z.exactOptional(z.string()),
    ChecksumDate: z.exactOptional(z.string()),
  }),
);

/** Only Id and Name must be there, but what is there must have the type that the catalogue gives it. */
const productRecordSchema = z.looseObject({
  '@odata.mediaContentType': z.exactOptional(z.string()),
  Id: z.string().min(1),
  Name: z.string().min(1),
  ContentType: z.exactOptional(z.string()),
  ContentLength: z.exactOptional(z.number()),
  OriginDate: z.exactOptional(z.string()),
  PublicationDate: z.exactOptional(z.string()),
  ModificationDate: z.exactOptional(z.string()),
  Online: z.exactOptional(z.boolean()),
  EvictionDate: z.exactOptional(z.string()),
  S3Path: z.exactOptional(z.string()),
  Checksum: z.exactOptional(checksums),
  ContentDate: z.exactOptional(z.object({ Start: z.string(), End: z.string() })),
  Footprint: z.exactOptional(z.string().nullable()),
  GeoFootprint: z.exactOptional(
    z.looseObject({ type: z.string(), coordinates: z.array(z.unknown()) }).nullable(),
  ),
  Attributes: z.exactOptional(
    z.array(z.looseObject({ Name: z.string(), Value: z.exactOptional(z.unknown()) })),
  ),
  Assets: z.exactOptional(z.array(z.unknown())),
  Locations: z.exactOptional(
    z.array(
      z.looseObject({
        FormatType: z.exactOptional(z.string()),
        Checksum: z.exactOptional(checksums),
      }),
    ),
  ),
});

/**
 * Reads a file of product records, one JSON object a line; blank lines are passed over.
 * Throws a SandboxConfigurationError that names file and line, and says what to do, for the first line that is not a
 * record, for a file without any record, and for one that cannot be read.
 */
export function readProductRecords(file: string): CatalogueProduct[] {
  const records = readText(file)
    .split('\n')
    .flatMap((line, index) => (line.trim() === '' ? [] : [parseRecord(line, file, index + 1)]));
  if (records.length === 0) {
    throw new SandboxConfigurationError(
      `${file} has no product records: put one JSON object on each line.`,
    );
  }
  return records;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SandboxConfigurationError(
      `Cannot read the product records in ${file} (${reason}): check the path.`,
      {
        cause,
      },
    );
  }
}

function parseRecord(line: string, file: string, lineNumber: number): CatalogueProduct {
  const place = `${file}, line ${lineNumber}`;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new SandboxConfigurationError(
      `${place} is not valid JSON: put each product record on one line, as JSON Lines, or remove the line.`,
      { cause },
    );
  }
  const record = productRecordSchema.safeParse(value);
  if (record.success) return record.data;
  const problems = record.error.issues.map(({ path, message }) =>
    path.length === 0 ? message : `${path.join('.')}: ${message}`,
  );
  throw new SandboxConfigurationError(
    `${place} is not a product record (${problems.join('; ')}): correct the line or remove it. A record needs at least Id and Name as text.`,
  );
}
