/** Short texts about a product for lists: mission, type, sensing time, tile or orbit, cloud cover, place. */
import { shortDateUs } from '../core/terms/dates.ts';
import { printable } from '../core/terms/text.ts';
import { parseProductName } from './naming/conventions.ts';
import type { ProductRow } from './products.ts';

/** Facts of a product for lists, from its row or from a record that is not indexed yet. */
export type ProductFacts = Pick<
  ProductRow,
  | 'productName'
  | 'platform'
  | 'productType'
  | 'processingLevel'
  | 'sensingStartUs'
  | 'cloudCoverPercent'
  | 'orbitNumber'
  | 'relativeOrbitNumber'
  | 'tile'
>;

/** Unknown values are null. */
export interface ProductCells {
  /** `S2A`, `S5P`, `L8`. */
  mission: string | null;
  /** Product type, or processing level if the name has no type. */
  type: string | null;
  sensed: string | null;
  /** `32TQM R108`, `60000 R022`; path and row of Landsat as `190/027`. */
  tile: string | null;
  cloud: string | null;
  /** `northern Italy`, `North Sea off Denmark`. */
  place: string | null;
}

/** Describes a product by its facts, its name, and the place of its footprint. */
export function productCells(facts: ProductFacts, place: string | null): ProductCells {
  const named = parseProductName(facts.productName ?? '');
  const { tile, orbitNumber, relativeOrbitNumber, cloudCoverPercent } = facts;
  const [, path, row] = /^path (\d+), row (\d+)$/.exec(named?.tile ?? '') ?? [];
  const square = tile ?? (path === undefined ? null : `${pad(path)}/${pad(row)}`);
  const relative = relativeOrbitNumber === null ? null : `R${pad(relativeOrbitNumber)}`;
  const parts = [square ?? orbitNumber, relative].filter((part) => part !== null);
  const sensed = toMinute(facts.sensingStartUs ?? named?.startUs ?? null);
  const cloud = cloudCoverPercent === null ? null : percentBelow(cloudCoverPercent);
  return {
    mission: facts.platform === null ? null : shortMission(facts.platform),
    type: facts.productType ?? named?.level ?? facts.processingLevel,
    sensed,
    tile: parts.length === 0 ? null : parts.join(' '),
    cloud: cloud === null ? null : `${cloud} %`,
    place,
  };
}

/** Longest name shown in lists. Names of the catalogue have about 100 characters. */
const nameMax = 300;

/** Returns the name of a product, or its id: bounded, with control characters and direction marks replaced. */
export function productNameText({
  productId,
  productName,
}: Pick<ProductRow, 'productId' | 'productName'>): string {
  const name = printable(productName ?? productId);
  return name.length > nameMax ? `${name.slice(0, nameMax)}…` : name;
}

/** `2026-11-20 06:00`; null for no time. */
export function toMinute(us: number | null): string | null {
  return us === null || Number.isNaN(us) ? null : shortDateUs(us);
}

function pad(number: number | string = ''): string {
  return String(number).padStart(3, '0');
}

/** Shortens `SENTINEL-2A` to `S2A` and `LANDSAT-8` to `L8`; other platforms are unchanged. */
function shortMission(platform: string): string {
  return platform.replace(/^SENTINEL-(?=\d)/i, 'S').replace(/^LANDSAT-(?=\d)/i, 'L');
}

/** Rounds down to one decimal: 19.96 must not appear as 20 in a list of less than 20 percent. */
function percentBelow(percent: number): string {
  const rounded = percent.toFixed(1);
  return Number(rounded) > percent ? (Number(rounded) - 0.1).toFixed(1) : rounded;
}
