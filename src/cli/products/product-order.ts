/** Reads the order of products on the command line, such as `PublicationDate desc`. */
import { AppError } from '../../domain/app-error.ts';
import type { Entity } from '../../domain/filter-tree.ts';
import type { ProductOrder, ProductQuery } from '../../domain/products.ts';
import { orderableFields } from '../../filter/fields.ts';

export type Order = NonNullable<ProductQuery['order']>;

/** Reads a field in any case and a direction, ascending unless told. Throws `usage`. */
export function parseOrder(text: string, entity: Entity): Order {
  const [field = '', direction = 'asc', ...more] = text.trim().split(/\s+/);
  const choices: readonly ProductOrder[] = ['received', ...orderableFields[entity]];
  const by = choices.find((one) => one.toLowerCase() === field.toLowerCase());
  const wanted = direction.toLowerCase();
  if (by !== undefined && more.length === 0 && (wanted === 'asc' || wanted === 'desc')) {
    return { by, direction: wanted };
  }
  const of = entity === 'Products' ? 'products' : 'deleted products';
  throw new AppError(
    'usage',
    `--orderby "${text}" is no order of ${of}: use one of ${choices.join(', ')}, with asc or desc after it.`,
  );
}
