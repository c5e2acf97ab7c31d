/** What the thread of product questions is asked. */
import type { ProductQuery, Products } from '../../domain/products.ts';

type EventsQuestion = Parameters<Products['pushedEvents']>[0];
type DelaysQuestion = Parameters<Products['delays']>[0];

type Counted = Pick<ProductQuery, 'entity' | 'filter'>;

export type ProductRequest =
  | { op: 'page'; id: number; query: ProductQuery; rowsMax: number }
  | { op: 'count'; id: number; query: Counted }
  | { op: 'explain'; id: number; query: ProductQuery }
  | { op: 'state'; id: number }
  | { op: 'position'; id: number }
  | { op: 'events'; id: number; question: EventsQuestion }
  | { op: 'delays'; id: number; question: DelaysQuestion }
  /** Gives up the question with this id, if it is still being answered. */
  | { op: 'cancel'; id: number; givenUp: number }
  | { op: 'close'; id: number };
