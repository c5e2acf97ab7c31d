/** Which processing a product is of, in words. */
import { dateWords } from './phrases.ts';
import type { Version } from './versions.ts';

/** Missions count their processings in different ways; `05.11` is a processing baseline. */
export function baselineLabel(baseline: string | null): string {
  if (baseline === null || /^(?:\d\d\.\d\d|F\d\d)$/.test(baseline)) return 'processing baseline';
  return /^\d{3}$/.test(baseline) ? 'baseline collection' : 'processor version';
}

/** Auxiliary files are not processed again, but written anew. */
export function versionNoun({ auxiliary }: { auxiliary: boolean }): string {
  return auxiliary ? 'version' : 'processing';
}

/** `processing baseline 05.11, published on 7 June 2024 00:28 UTC`; null where there is none. */
export function versionWords(version: Version | null): string | null {
  if (version === null) return null;
  const { baseline, publicationUs } = version;
  const date = dateWords(publicationUs);
  const words = [
    ...(baseline === null ? [] : [`${baselineLabel(baseline)} ${baseline}`]),
    ...(date === null ? [] : [`published on ${date}`]),
  ];
  return words.length === 0 ? 'of the same scene' : words.join(', ');
}
