/** Ids of products in the catalogue's own STAC API (facts/stac.md): its items and collections. */

export const catalogueStacUrl = 'https://stac.dataspace.copernicus.eu/v1';

export interface CatalogueIds {
  /** The name of the product without its extension. */
  id: string;
  /** Null for a product type without a known collection. */
  collection: string | null;
}

export function catalogueIds(productName: string): CatalogueIds {
  const id = productName.replace(/\.[a-z][a-z0-9]{1,3}$/i, '');
  return { id, collection: collectionOf(id) };
}

/** Timeliness in names, and in the ids of collections. */
const timeliness: Readonly<Record<string, string>> = { NR: 'nrt', ST: 'stc', NT: 'ntc' };

/** Instruments of Sentinel-3 in names, and in the ids of collections. */
const instruments: Readonly<Record<string, string>> = { OL: 'olci', SL: 'sl', SR: 'sr', SY: 'syn' };

/** The collections of Sentinel-3 and Sentinel-5P, each with its kinds of timeliness. */
const known: readonly [collections: RegExp, timeliness: RegExp][] = [
  [/^sentinel-3-olci-(?:1-e[fr]r|2-l[fr]r|2-w[fr]r)$/, /^n/],
  [/^sentinel-3-sl-(?:1-rbt|2-frp|2-lst|2-wst)$/, /^n/],
  [/^sentinel-3-sl-2-aod$/, /^nrt$/],
  [/^sentinel-3-sr-(?:1-sra|1-sra-a|2-lan|2-lan-(?:hy|si|li)|2-wat)$/, /./],
  [/^sentinel-3-syn-2-(?:syn|v10|vg1|vgp)$/, /^[sn]tc$/],
  [/^sentinel-3-syn-2-aod$/, /^ntc$/],
  [/^sentinel-5p-l1-ra-bd[1-8]$/, /./],
  [/^sentinel-5p-l2-(?:aer-ai|aer-lh|ch4|cloud|co|hcho|no2|o3|o3-tcl|o3-pr|so2)$/, /./],
  [/^sentinel-5p-l2-np-bd[367]$/, /^(?:offl|rpro)$/],
];

function collectionOf(id: string): string | null {
  const [, level] = /^S2[A-D]_MSI(L1C|L2A)_/.exec(id) ?? [];
  if (level !== undefined) return `sentinel-2-${level.toLowerCase()}`;
  const [, mode, type] = sentinel1.exec(id) ?? [];
  if (type === 'SLC') return mode === 'WV' ? 'sentinel-1-slc-wv' : 'sentinel-1-slc';
  if (type !== undefined) return type === 'GRD' ? 'sentinel-1-grd' : 'sentinel-1-etad';
  const [base, time] = sentinel3(id) ?? sentinel5p(id) ?? [];
  if (base === undefined || time === undefined) return null;
  const isKnown = known.some(([collections, times]) => collections.test(base) && times.test(time));
  return isKnown ? `${base}-${time}` : null;
}

/** Other products, such as annotations and coherences, have the name of their source and more. */
const sentinel1 =
  /^S1[A-D]_(IW|EW|WV|S\d)_(?=GRD[FHM]_1S|SLC__1S|ETA__AX)(GRD|SLC|ETA)\w+_[0-9A-F]{4}(?:_COG)?$/;

const part = (text: string) => text.replace(/_+$/, '').replaceAll(/_+/g, '-').toLowerCase();

function sentinel3(id: string) {
  const [, instrument = '', type = '', time = ''] =
    /^S3[A-D]_([A-Z]{2})_(\w{8})_\d{8}T.*_(NR|ST|NT)_\d+$/.exec(id) ?? [];
  const short = instruments[instrument];
  return short && ([`sentinel-3-${short}-${part(type)}`, timeliness[time]] as const);
}

function sentinel5p(id: string) {
  const [, time, level, type = ''] =
    /^S5P_(NRTI|OFFL|RPRO)_L([12])[B_]_(\w{6})_\d{8}T/.exec(id) ?? [];
  return time && ([`sentinel-5p-l${level}-${part(type)}`, time.toLowerCase()] as const);
}
