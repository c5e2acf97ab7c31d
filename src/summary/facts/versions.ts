/** Finds older and newer processings of a scene. */
import { parseProductName } from '../../domain/naming/conventions.ts';
import { datePhrase, present } from './phrases.ts';

/** Another product, possibly of the same scene; unknown values are null. */
export interface OtherVersion {
  productName: string;
  processingBaseline: string | null;
  publicationUs: number | null;
  /** Null unless deleted. */
  deletionUs: number | null;
}

/** Another processing of the same scene, with values in known forms. */
export interface Version {
  name: string;
  baseline: string | null;
  publicationUs: number | null;
}

/** Age of a processing: the first field that two processings have and that differs decides. */
interface Age {
  baseline: string | null;
  producedUs: number | null;
  publicationUs: number | null;
}

/**
 * Returns the newest of the newer versions that are not deleted, and the newest of the older versions. Both are
 * null for a name in no known form.
 */
export function versionsOf(
  name: string,
  baseline: string | null,
  publicationUs: number | null,
  others: readonly OtherVersion[],
): { replacedBy: Version | null; replaces: Version | null } {
  const scene = sceneOf(name);
  if (scene === null) return { replacedBy: null, replaces: null };
  const own = { baseline, producedUs: parseProductName(name)?.producedUs ?? null, publicationUs };
  const same = others
    .filter((other) => scene.matches(other.productName))
    .map((other) => ({ other, age: ageOf(other) }))
    // Ties are sorted by name, so that the order of arrival does not matter.
    .toSorted(
      (a, b) => compareAges(b.age, a.age) || compareTexts(b.other.productName, a.other.productName),
    );
  const newer = same.find(
    ({ other, age }) => other.deletionUs === null && compareAges(age, own) > 0,
  );
  const older = same.find(({ age }) => compareAges(age, own) < 0);
  return { replacedBy: versionOf(newer), replaces: versionOf(older) };
}

function ageOf({ productName, processingBaseline, publicationUs }: OtherVersion): Age {
  const named = parseProductName(productName);
  const baseline = /^\d\d\.\d\d$/.test(processingBaseline ?? '') ? processingBaseline : null;
  return {
    baseline: named?.baseline ?? baseline,
    producedUs: named?.producedUs ?? null,
    publicationUs,
  };
}

/** Returns a positive number if `a` is newer. */
function compareAges(a: Age, b: Age): number {
  return (
    compareTexts(a.baseline, b.baseline) ||
    compareNumbers(a.producedUs, b.producedUs) ||
    compareNumbers(a.publicationUs, b.publicationUs)
  );
}

/** Baselines of a mission have the same length, so they compare as texts. */
function compareTexts(a: string | null, b: string | null): number {
  if (a === null || b === null || a === b) return 0;
  return a > b ? 1 : -1;
}

function compareNumbers(a: number | null, b: number | null): number {
  return a === null || b === null ? 0 : a - b;
}

function versionOf(found: { other: OtherVersion; age: Age } | undefined): Version | null {
  if (found === undefined) return null;
  const { other, age } = found;
  return {
    name: other.productName,
    baseline: age.baseline,
    publicationUs: datePhrase(other.publicationUs) === null ? null : other.publicationUs,
  };
}

interface Scene {
  /** Prefix of all names of the scene, and maybe others: for `startswith(Name, …)`. */
  prefix: string;
  /**
   * Part of all names of the scene, for `contains(Name, …)`; null if the prefix suffices. Hundreds of Sentinel-2
   * tiles share a prefix.
   */
  contains: string | null;
  /** Returns true for another product of the same scene and kind, false for the name itself. */
  matches(other: string): boolean;
}

/**
 * Returns the scene of a product; null for names in no known form, and for those that begin with the parts that
 * change with the processing (orbit files). Names of Sentinel-5P begin with the processing stream, so only
 * versions in the same stream are found.
 */
export function sceneOf(productName: string): Scene | null {
  const scene = parseProductName(productName)?.scene ?? null;
  if (scene === null) return null;
  const { prefix, contains, key } = scene;
  const stem = withoutEnding(productName);
  return {
    prefix,
    contains,
    matches: (other) =>
      withoutEnding(other) !== stem && parseProductName(other)?.scene?.key === key,
  };
}

/** Removes the ending, which old records lack. */
function withoutEnding(name: string): string {
  return name.replace(/\.(?:SAFE|SEN3|SEN6|nc|tar)$/, '');
}

/** Returns the mission's term for a processing number; `05.11` is a processing baseline. */
export function baselineLabel(baseline: string | null): string {
  if (baseline === null || /^(?:\d\d\.\d\d|F\d\d)$/.test(baseline)) return 'processing baseline';
  return /^\d{3}$/.test(baseline) ? 'baseline collection' : 'processor version';
}

/** Auxiliary files have versions, not processings. */
export function versionNoun({ auxiliary }: { auxiliary: boolean }): string {
  return auxiliary ? 'version' : 'processing';
}

/** Returns `processing baseline 05.11, published on 7 June 2024 00:28 UTC`; null without a version. */
export function versionPhrase(version: Version | null): string | null {
  if (version === null) return null;
  const { baseline, publicationUs } = version;
  const date = datePhrase(publicationUs);
  const parts = present(
    baseline && `${baselineLabel(baseline)} ${baseline}`,
    date && `published on ${date}`,
  );
  return parts.length === 0 ? 'of the same scene' : parts.join(', ');
}
