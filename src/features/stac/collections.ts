/** STAC collections: one for each mission and product type, such as `SENTINEL-2.S2MSI2A`. */

import { and, attributeOf, type Expression, not, textField } from '../../filter/builder.ts';
import { attributeIs } from '../../filter/product-conditions.ts';
import type { ProductView } from '../../filter/product-view.ts';
import type { CollectionSummary, Products } from '../../filter/products.ts';

/** Null: products without this value. */
export interface StacCollectionKey {
  /** Collection of the catalogue, such as `SENTINEL-2`. */
  mission: string | null;
  productType: string | null;
}

/** Words for an absent value. */
const absent = { mission: 'unknown', productType: 'untyped' } as const;

/** Returns the id; every product is in one collection. */
export function collectionId({ mission, productType }: StacCollectionKey): string {
  const missionPart = idPart(mission, absent.mission).replaceAll('.', '%2E');
  return `${missionPart}.${idPart(productType, absent.productType)}`;
}

/** Returns null for a text that is no id of a collection. */
export function readCollectionId(id: string): StacCollectionKey | null {
  const [, mission = '', productType = ''] = /^([^.]+)\.(.+)$/s.exec(id) ?? [];
  if (mission === '') return null;
  try {
    const key = {
      mission: mission === absent.mission ? null : decodeURIComponent(mission),
      productType: productType === absent.productType ? null : decodeURIComponent(productType),
    };
    return collectionId(key) === id ? key : null;
  } catch {
    return null;
  }
}

/** A value that equals the word for an absent one gets an escaped first letter. */
function idPart(value: string | null, word: string): string {
  if (value === null) return word;
  const text = encodeURIComponent(value.toWellFormed());
  return text === word ? `%${text.charCodeAt(0).toString(16)}${text.slice(1)}` : text;
}

export function collectionOfView(view: ProductView): StacCollectionKey {
  const type = view.attribute('productType');
  return {
    mission: view.text('Collection/Name'),
    productType: typeof type === 'string' ? type : null,
  };
}

/** Matches the products of a collection. */
export function inCollection({ mission, productType }: StacCollectionKey): Expression {
  const name = textField('Collection/Name');
  const typed = attributeOf('productType', 'String').ge('');
  return and(
    mission === null ? not(name.ge('')) : name.eq(mission),
    productType === null ? not(typed) : attributeIs('productType', productType),
  );
}

/** Lists collections; rejects as `Products` does. */
export type CollectionList = () => Promise<readonly CollectionSummary[]>;

/** A list may be out of date by this multiple of the time that it takes to read. */
const reuseFactor = 20;

/** Maximum time to read the list. */
const listTimeoutMs = 60_000;

/**
 * Creates the list of collections, which reads the whole index: it is read again after changes, but costs at most a
 * twentieth of the time. Concurrent requests share one reading. `nowUs` is the clock.
 */
export function createCollectionList(products: Products, nowUs: () => number): CollectionList {
  let last: { position: number; untilUs: number; list: ReturnType<CollectionList> } | undefined;
  return async () => {
    const position = await products.indexedPosition();
    const startUs = nowUs();
    if (last !== undefined && (last.position === position || startUs < last.untilUs)) {
      return last.list;
    }
    const list = products.collections(AbortSignal.timeout(listTimeoutMs));
    const reading = { position, untilUs: Infinity, list };
    last = reading;
    try {
      const found = await list;
      reading.untilUs = nowUs() + reuseFactor * (nowUs() - startUs);
      return found;
    } catch (error) {
      last = undefined;
      throw error;
    }
  };
}
