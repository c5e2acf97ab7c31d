/** Reads what is to be kept: an age, a size, or both. */
import { z } from 'zod';
import type { Keep } from '../domain/pruning.ts';
import { byteSize } from './value-schemas.ts';

const unitsUs = { h: 3_600_000_000, d: 86_400_000_000, w: 604_800_000_000 } as const;

/** `365d`, `52w` or `36h`, to microseconds. */
export const keptAge = z.string().transform((text, context) => {
  const match = /^(\d{1,5}) ?([hdw])$/.exec(text);
  const unit = Object.entries(unitsUs).find(([name]) => name === match?.[2]);
  if (match === null || unit === undefined) {
    context.addIssue(`must be an age such as 365d, 52w or 36h${suggestion(text, ageLike(text))}`);
    return z.NEVER;
  }
  return Number(match[1]) * unit[1];
});

/** `50GB` or `20GiB`, to bytes: a number alone would be taken for anything. */
export const keptSize = z.string().transform((text, context) => {
  const size = /[kMGT]i?B?$/.test(text) ? byteSize.safeParse(text) : null;
  if (size?.success === true && size.data > 0) return size.data;
  context.addIssue(`must be a size such as 50GB or 20GiB${suggestion(text, sizeLike(text))}`);
  return z.NEVER;
});

/** Less is more likely a slip than a wish, and what is gone is gone. */
const leastKept = { ageUs: unitsUs.d, bytes: 100e6 };

/** `365d`, `50GB`, or both with a comma between them. */
export const kept = z.string().transform((text, context): Keep => {
  const found: Keep = { ageUs: null, bytes: null };
  for (const part of text.split(',').map((one) => one.trim())) {
    const [age, size] = [keptAge.safeParse(part), keptSize.safeParse(part)];
    if (age.success && found.ageUs === null) found.ageUs = age.data;
    else if (size.success && found.bytes === null) found.bytes = size.data;
    else {
      const like = sizeLike(part) ?? ageLike(part);
      const what = age.success || size.success ? 'comes too often' : 'is neither';
      context.addIssue(
        `must be an age such as 365d, a size such as 50GB, or both with a comma between them; "${part}" ${what}${suggestion(part, like)}`,
      );
      return z.NEVER;
    }
  }
  const { ageUs, bytes } = found;
  if (
    (ageUs ?? leastKept.ageUs) < leastKept.ageUs ||
    (bytes ?? leastKept.bytes) < leastKept.bytes
  ) {
    context.addIssue('must be at least 1d, or 100MB');
    return z.NEVER;
  }
  return found;
});

/** `365`, `365 days`, `1y`: what was meant, in our own words; null for anything else. */
function ageLike(text: string): string | null {
  const match = /^(\d{1,5}) ?(?:([hdwy])(?:ours?|ays?|eeks?|ears?)?)?$/i.exec(text);
  const unit = match?.[2]?.toLowerCase() ?? 'd';
  if (match === null) return null;
  return unit === 'y' ? `${Number(match[1]) * 365}d` : `${match[1]}${unit}`;
}

/** `50gb`, `50 Gb`; but not `12m`, which may be months. */
function sizeLike(text: string): string | null {
  const match = /^([\d.]{1,10}) ?(?:([kmgt])(i)?b|([gt]))$/i.exec(text);
  const unit = (match?.[2] ?? match?.[4])?.toUpperCase().replace('K', 'k');
  return match === null ? null : `${match[1]}${unit}${match[3] === undefined ? '' : 'i'}B`;
}

function suggestion(text: string, like: string | null): string {
  return like === null || like === text ? '' : `. Did you mean ${like}?`;
}
