/** Looks products up in the index: one by its id, and the other versions of its scene. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { FoundProduct, Products } from '../../domain/products.ts';
import type { OtherVersion } from '../facts/product-facts.ts';
import { sceneOf } from '../facts/scene.ts';

/** A scene has a handful of versions; more than these say nothing new. */
const versionsMax = 20;

/** Alive, or a tombstone; null when no notification told of it, or the index has not got there. */
export async function productById(
  products: Pick<Products, 'find'>,
  productId: string,
): Promise<FoundProduct | null> {
  const literal = { type: 'text', value: productId } as const;
  const filter = { node: 'comparison', field: 'Id', operator: 'eq', literal } as const;
  for await (const found of both(products, filter, 1)) return found;
  return null;
}

/** Those of them that are known, alive or tombstones, in any order. */
export async function productsById(
  products: Pick<Products, 'find'>,
  productIds: readonly string[],
): Promise<FoundProduct[]> {
  if (productIds.length === 0) return [];
  const literals = productIds.map((value) => ({ type: 'text', value }) as const);
  const filter = { node: 'in', field: 'Id', literals } as const;
  const found: FoundProduct[] = [];
  for await (const one of both(products, filter, productIds.length)) found.push(one);
  return found;
}

/** The same scene in another processing: what replaced it, or what it replaces. */
export async function otherVersions(
  products: Pick<Products, 'find'>,
  { row }: FoundProduct,
): Promise<OtherVersion[]> {
  const scene = row.productName === null ? null : sceneOf(row.productName);
  if (scene === null) return [];
  const { prefix, contains } = scene;
  const terms = [...beginningWith(prefix), ...(contains === null ? [] : [holding(contains)])];
  const filter: FilterTree = { node: 'and', terms };
  const others: OtherVersion[] = [];
  for await (const { row: other } of both(products, filter, versionsMax, false)) {
    const { productId, productName, processingBaseline, publicationUs, deletionUs } = other;
    if (productId === row.productId || productName === null) continue;
    if (!scene.matches(productName)) continue;
    others.push({ productName, processingBaseline, publicationUs, deletionUs });
  }
  return others;
}

/** `startswith`, as a range: by the index on names a look-up takes a fraction of a millisecond. */
function beginningWith(prefix: string): FilterTree[] {
  const bound = (operator: 'ge' | 'lt', value: string) => {
    const literal = { type: 'text', value } as const;
    return { node: 'comparison', field: 'Name', operator, literal } as const;
  };
  return [bound('ge', prefix), bound('lt', `${prefix}\uffff`)];
}

function holding(text: string): FilterTree {
  return { node: 'text', function: 'contains', field: 'Name', text };
}

async function* both(
  products: Pick<Products, 'find'>,
  filter: FilterTree,
  limit: number,
  records = true,
): AsyncGenerator<FoundProduct> {
  for (const entity of ['Products', 'DeletedProducts'] as const) {
    yield* products.find({ entity, filter, limit, records });
  }
}
