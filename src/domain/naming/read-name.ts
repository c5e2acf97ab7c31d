/** Reads a product's name by the convention of its mission. */
import { auxiliaryName } from './auxiliary.ts';
import type { NamedProduct, NameReader } from './named-product.ts';
import { landsatName, sentinel6Name } from './other-missions.ts';
import { sentinel1Name } from './sentinel-1.ts';
import { sentinel2Name } from './sentinel-2.ts';
import { sentinel3Name } from './sentinel-3.ts';
import { sentinel5pName } from './sentinel-5p.ts';

const readers: readonly NameReader[] = [
  sentinel1Name,
  sentinel2Name,
  sentinel3Name,
  sentinel5pName,
  auxiliaryName,
  sentinel6Name,
  landsatName,
];

/** Above the longest name of any convention. */
const longest = 110;

/** What the name tells; null where it follows no known convention as a whole. Linear in its length. */
export function readName(name: string): NamedProduct | null {
  if (name.length > longest) return null;
  for (const read of readers) {
    const found = read(name);
    if (found !== null) return found;
  }
  return null;
}
