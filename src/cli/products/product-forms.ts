/** The forms in which products are printed. */

export const productForms = ['table', 'json', 'ndjson', 'csv', 'geojson', 'ids'] as const;
export type ProductForm = (typeof productForms)[number];

/** The others are written from the columns of the index alone, which is faster. */
export const formsWithRecords: ReadonlySet<ProductForm> = new Set(['json', 'ndjson', 'geojson']);

/** A person's first look; programs get everything unless they set a limit. */
export const tableRowsDefault = 50;
