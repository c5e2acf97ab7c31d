/** Missions of the catalogue. All lists of collections, satellites and prefixes of names derive from one table. */

interface Mission {
  /** Collection of the catalogue. */
  readonly collection: string;
  /** Name in texts; null if it is not known. */
  readonly title: string | null;
  /** `letter`: each satellite has a letter, as in SENTINEL-1A. `one`: the collection is a satellite. */
  readonly satellite?: 'letter' | 'one';
  /** Prefix of product names (documentation of each mission's file names). Its group is the letter of the satellite. */
  readonly names?: RegExp;
  /** Abbreviation in the table of published attributes. */
  readonly code?: string;
  /** Products have the platform of another mission, so the folder decides. */
  readonly isDerived?: true;
  readonly isRadar?: true;
  /** Group with a colour of its own on the map; names of its collections start with it. */
  readonly group?: string;
}

const sentinel = (number: 1 | 2 | 3 | 6, names: RegExp) => ({
  ...{
    collection: `SENTINEL-${number}`,
    title: `Sentinel-${number}`,
    satellite: 'letter' as const,
  },
  ...{ names, code: `S${number}`, group: `SENTINEL-${number}` },
});

const landsat = (number: number, names: RegExp) => ({
  ...{ collection: `LANDSAT-${number}`, title: `Landsat-${number}`, satellite: 'one' as const },
  ...{ names, code: `L${number}`, group: 'LANDSAT' },
});

/** Sources: the published attributes; eu-cdse/documentation, APIs/OData.qmd; facts, catalogue 7. */
const missions: readonly Mission[] = [
  { ...sentinel(1, /^S1([A-Z_])_/), isRadar: true },
  {
    ...{ collection: 'SENTINEL-1-RTC', title: 'Sentinel-1 RTC', code: 'S1RTC' },
    ...{ isDerived: true, isRadar: true },
  },
  sentinel(2, /^S2([A-Z_])_/),
  sentinel(3, /^S3([A-Z_])_/),
  {
    ...{ collection: 'SENTINEL-5P', title: 'Sentinel-5P', satellite: 'one' },
    ...{ names: /^S5P_/, code: 'S5P', group: 'SENTINEL-5P' },
  },
  sentinel(6, /^S6([A-Z_])_/),
  {
    ...{ collection: 'ENVISAT', title: 'Envisat', satellite: 'one', code: 'ENV' },
    names: /^(?:ENV_|(?:ASA|MER|ATS|SCI|GOM|MIP|RA2|MWR|DOR)_[A-Z0-9_]{6}_?[A-Z0-9]{4})/,
  },
  landsat(5, /^LT05_/),
  landsat(7, /^LE07_/),
  landsat(8, /^L[COT]08_/),
  landsat(9, /^L[COT]09_/),
  { collection: 'LANDSAT-8-ESA', title: null },
  { collection: 'SMOS', title: 'SMOS', satellite: 'one', names: /^SM_[A-Z]{4}_/ },
  { collection: 'CCM', title: 'CCM' },
  { collection: 'CLMS', title: 'CLMS', group: 'CLMS' },
  { collection: 'GLOBAL-MOSAICS', title: 'Global Mosaics', isDerived: true },
  { collection: 'TERRA', title: 'Terra', satellite: 'one' },
  { collection: 'AQUA', title: 'Aqua', satellite: 'one' },
  { collection: 'TERRAAQUA', title: null },
  { collection: 'COP-DEM', title: null },
  { collection: 'S2GLC', title: null },
];

const byCollection = new Map(missions.map((mission) => [mission.collection, mission]));

/** Known collections; others may exist. */
export const publishedCollections: readonly string[] = [...byCollection.keys()];

export const radarCollections: readonly string[] = missions.flatMap(({ isRadar, collection }) =>
  isRadar ? [collection] : [],
);

/** Groups of collections with a colour of their own on the map. */
export const collectionGroups: readonly string[] = [
  ...new Set(missions.flatMap(({ group }) => group ?? [])),
];

/** Collections by their abbreviation in the table of published attributes. */
export const collectionsByCode: ReadonlyMap<string, string> = new Map(
  missions.flatMap(({ code, collection }) => (code === undefined ? [] : [[code, collection]])),
);

/** Finds a mission by its collection or platform, in any case. */
export function findMission(name: string | null | undefined): Mission | null {
  return byCollection.get(name?.trim().toUpperCase() ?? '') ?? null;
}

/** Returns the collection and the satellite of a product name; null for an unknown prefix. */
export function missionOfName(name: string): { collection: string; satellite: string } | null {
  for (const { collection, names } of missions) {
    const match = names?.exec(name);
    if (!match) continue;
    // Auxiliary files for all satellites have `_`.
    return { collection, satellite: `${collection}${(match[1] ?? '').replace('_', '')}` };
  }
  return null;
}

/**
 * Returns the satellite of a product, or its mission: from the attributes, completed from the name, else from the
 * collection. Null if none is known.
 */
export function satelliteOf(product: {
  platformName: string | null;
  platformSerial: string | null;
  productName: string | null;
  collection: string | null;
}): string | null {
  const { platformName, platformSerial, productName, collection } = product;
  const isKnown = platformSerial !== null && /^[A-Z0-9]+$/i.test(platformSerial);
  if (platformName !== null && isKnown) return `${platformName}${platformSerial}`;
  const named = missionOfName(productName ?? '');
  // Records of some satellites have a platform without a serial (facts, catalogue 7).
  if (platformName !== null) {
    return named?.collection === platformName.toUpperCase() ? named.satellite : platformName;
  }
  if (named !== null) return named.satellite;
  const mission = findMission(collection);
  return mission?.satellite === undefined ? null : mission.collection;
}
