/** Finds the products that show the same scene, processed at another time. */
import { readName } from '../../domain/naming/read-name.ts';

export interface Scene {
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
  const scene = readName(productName)?.scene ?? null;
  if (scene === null) return null;
  const { prefix, contains, key } = scene;
  const stem = withoutEnding(productName);
  return {
    prefix,
    contains,
    matches: (other) => withoutEnding(other) !== stem && readName(other)?.scene?.key === key,
  };
}

/** Old records carry the same name without its ending. */
function withoutEnding(name: string): string {
  return name.replace(/\.(?:SAFE|SEN3|SEN6|nc|tar)$/, '');
}
