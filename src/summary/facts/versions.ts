/** Which processings of a scene came before and after a product. */
import { parseProductName } from '../../domain/naming/conventions.ts';
import { datePhrase, present } from './phrases.ts';

/** Another product, perhaps of the same scene; what is not known is null. */
export interface OtherVersion {
  productName: string;
  processingBaseline: string | null;
  publicationUs: number | null;
  /** Null while it is alive. */
  deletionUs: number | null;
}

/** Another processing of the same scene; all of a known form. */
export interface Version {
  name: string;
  baseline: string | null;
  publicationUs: number | null;
}

/** How new a processing is: the first of these that two of them have and differ in decides. */
interface Age {
  baseline: string | null;
  producedUs: number | null;
  publicationUs: number | null;
}

/**
 * The newest of the newer versions that are still there, and the newest of the older ones, there or not.
 * Both null where the name is of no known form.
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
    // By name where nothing else decides, so that the order of arrival does not matter.
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

/** Above 0 when `a` is newer. */
function compareAges(a: Age, b: Age): number {
  return (
    compareTexts(a.baseline, b.baseline) ||
    compareNumbers(a.producedUs, b.producedUs) ||
    compareNumbers(a.publicationUs, b.publicationUs)
  );
}

/** Baselines of one mission have one length, so that their order is that of texts. */
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
  /** All names of the scene begin with it, and others may: for `startswith(Name, …)`. */
  prefix: string;
  /**
   * What all of them also hold, for `contains(Name, …)`; null where the prefix is enough. Of Sentinel-2 hundreds
   * of tiles begin alike.
   */
  contains: string | null;
  /** Whether another product is of the same scene and kind. False for the name itself. */
  matches(other: string): boolean;
}

/**
 * The scene of a product; null for names of no known form, and for those whose convention puts what
 * changes with the processing first (orbit files). Names of Sentinel-5P begin with the processing stream:
 * only versions in the same stream are found.
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

/** Old records carry the same name without its ending. */
function withoutEnding(name: string): string {
  return name.replace(/\.(?:SAFE|SEN3|SEN6|nc|tar)$/, '');
}

/** Missions count their processings in different ways; `05.11` is a processing baseline. */
export function baselineLabel(baseline: string | null): string {
  if (baseline === null || /^(?:\d\d\.\d\d|F\d\d)$/.test(baseline)) return 'processing baseline';
  return /^\d{3}$/.test(baseline) ? 'baseline collection' : 'processor version';
}

/** Auxiliary files are not processed again, but written again. */
export function versionNoun({ auxiliary }: { auxiliary: boolean }): string {
  return auxiliary ? 'version' : 'processing';
}

/** `processing baseline 05.11, published on 7 June 2024 00:28 UTC`; null where there is none. */
export function versionPhrase(version: Version | null): string | null {
  if (version === null) return null;
  const { baseline, publicationUs } = version;
  const date = datePhrase(publicationUs);
  const words = present(
    baseline && `${baselineLabel(baseline)} ${baseline}`,
    date && `published on ${date}`,
  );
  return words.length === 0 ? 'of the same scene' : words.join(', ');
}
