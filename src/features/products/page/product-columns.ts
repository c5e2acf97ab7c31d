/** The columns of tables of products. The name is whole; narrow tables leave out the columns of a low rank. */

import { age, badge, type Html, html, type TableColumn } from '../../../core/page/markup.ts';
import { productLink } from '../../../core/page/page-state.ts';
import { byteText } from '../../../core/terms/text.ts';
import { productCells, productNameText } from '../../../filter/product-cells.ts';
import type { FoundProduct, ProductRow } from '../../../filter/products.ts';
import { placeOf } from '../places/places.ts';

/** Links the name of a product to its page. */
export function nameLink(row: Pick<ProductRow, 'productId' | 'productName'>): Html {
  return html`<a class="name" href="${productLink(row.productId)}">${productNameText(row)}</a>`;
}

/** Returns the columns; `first` are columns in front of them. */
export function productColumns(
  nowUs: number,
  first: readonly TableColumn<FoundProduct>[] = [],
): TableColumn<FoundProduct>[] {
  const cells = ({ row }: FoundProduct) => productCells(row, null);
  return [
    ...first,
    { title: 'received', value: ({ row }) => age(row.receivedAtUs, nowUs) },
    {
      title: 'product',
      class: 'product-name',
      value: ({ row }) =>
        html`${nameLink(row)}${row.online === false ? html` ${badge('warn', 'offline')}` : ''}`,
    },
    { title: 'place', value: ({ footprint }) => placeOf(footprint), class: 'place' },
    { title: 'cloud', value: (one) => cells(one).cloud, isNumber: true, class: 'cloud' },
    { title: 'sensed (UTC)', value: (one) => cells(one).sensed, class: 'tight rank-2' },
    { title: 'tile/orbit', value: (one) => cells(one).tile, class: 'tight rank-2' },
    { title: 'type', value: (one) => cells(one).type, class: 'rank-1' },
    { title: 'size', value: ({ row }) => byteText(row.sizeBytes), isNumber: true, class: 'rank-1' },
  ];
}
