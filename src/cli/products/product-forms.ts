/** The forms in which products are printed. */

export const productForms = ['table', 'json', 'ndjson', 'csv', 'geojson', 'ids'] as const;
export type ProductForm = (typeof productForms)[number];

/** Rows of a table without `--limit`; the other forms print all. */
export const tableRowsDefault = 50;
