/**
 * Compares docs/reference/summary-examples.md with the generated texts. To update the page:
 * `npx vitest run test/docs/summary-examples.test.ts --update`.
 */
import { describe, expect, it } from 'vitest';
import { productView } from '../../src/filter/product-view.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { type ProductFacts, productFacts } from '../../src/summary/facts/product-facts.ts';
import { productSheet } from '../../src/summary/facts/product-sheet.ts';
import { productText } from '../../src/summary/facts/product-text.ts';
import type { Place } from '../../src/summary/places/globe.ts';
import { openPlaces } from '../../src/summary/places/places.ts';
import {
  indexed,
  missing,
  notifiedProducts,
  type ReceivedProduct,
  received,
  recordedProducts,
} from '../summary/facts/found-product.ts';

const places = openPlaces();

const chapters: Readonly<Record<string, readonly string[]>> = {
  'Sentinel-1': [
    'S1C_IW_GRDH_1SDV_20260121T234824',
    'S1A_IW_GRDH_1SDV_20161128T053501',
    'S1A_IW_GRDH_1SSH_20151129T083510',
    'S1A_IW_SLC__1SSV_20160107T110059',
    'S1A_EW_RAW__0SSH_20151023T110638',
    'S1A_IW_GRDH_1SDV_20240206T041137',
    'S1A_20151223T180128',
    // Record without attributes.
    'S1A_IW_GRDH_1SDV_20240101T055104',
  ],
  'Sentinel-2': [
    'S2A_MSIL1C_20240912T112541',
    'S2A_MSIL1C_20150912T101403_N0500_R022_T33TUM',
    'S2A_MSIL1C_20200808T010311_N0500_R045_T55PBR',
    'S2A_MSIL2A_20240129T062121',
  ],
  'Sentinel-3': ['S3B_OL_1_EFR____20240415T075229', 'S3B_OL_1_EFR____20240415T074929'],
  'Auxiliary files (without a footprint)': [
    'S1A_OPER_AUX_POEORB_OPOD_20210316T193849',
    'S1A_OPER_AUX_GNSSRD_POD__20171211T085718',
    'S1__AUX_SCS',
    // The newer one replaced the older one.
    'S1A_AUX_PP1_V20140406T133000_G20240423',
    'S1A_AUX_PP1_V20140406T133000_G20250515',
  ],
  'A deleted product': ['S1A_IW_SLC__1SDV_20241111T044907'],
  'A notification without a record': [''],
};

/** Recorded products of the catalogue, and those of its documented notifications. */
function realProducts(): ReceivedProduct[] {
  return [
    ...recordedProducts(),
    ...notifiedProducts('doc-push-created-s2-l2a.elided.json'),
    ...notifiedProducts('doc-push-deleted-s1-slc.elided.json'),
    ...notifiedProducts('pull-read-after-3-days.json'),
  ];
}

/** The sandbox's first product of each type with a large place; the last one is deleted. */
function sandboxProducts(): ReceivedProduct[] {
  const generator = createProductGenerator({ seed: 5 });
  const firstMs = Date.UTC(2026, 4, 1);
  const all = Array.from({ length: 800 }, (_, i) => generator.next(firstMs + i * 60_000));
  const types = ['NRTI_L2__NO2___', 'NRTI_L2__AER_AI', 'OFFL_L2__CH4___', 'NRTI_L2__SO2___'];
  const found = types.flatMap((type) => {
    const candidates = all.filter(({ Name }) => Name.includes(type));
    return candidates.find((one) => (placeOf({ ...one })?.near.length ?? 0) > 1) ?? [];
  });
  const news = found.map((record) => received({ ...record }));
  const [last] = found.slice(-1);
  if (last === undefined) throw new Error('The sandbox has no such product.');
  const record = { ...generator.deleted(last, firstMs + 30 * 86_400_000, 'Obsolete product') };
  return [...news.slice(0, -1), { record, receivedUs: (firstMs + 31 * 86_400_000) * 1000 }];
}

function placeOf(record: Readonly<Record<string, unknown>>): Place | null {
  const geometry = productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}

async function factsOfAll(all: readonly ReceivedProduct[]): Promise<ProductFacts[]> {
  const found = await indexed(all);
  const others = [...found.values()].flatMap(({ row }) =>
    row.productName === null ? [] : [{ ...row, productName: row.productName }],
  );
  return all.map(({ record }) => {
    const one = found.get(record.Id);
    if (one === undefined) throw new Error(`${record.Id} is not in the index.`);
    return productFacts(one, { place: placeOf(one.record), others });
  });
}

const head = `# Examples of summaries

Summaries without a language model, made from the facts alone ([Summaries](../summaries.md)).

- The products are recorded ones of the catalogue and examples of its documentation. Those of Sentinel-5P are from the
  sandbox.
- For recorded products, the time of receipt is set to 46 s after the publication.
- Sources: countries of Natural Earth; large places of GeoNames (CC BY 4.0). Seas are approximate.

Written by \`npx vitest run test/docs/summary-examples.test.ts --update\`.
`;

describe('docs/reference/summary-examples.md', () => {
  it('is current', async (context) => {
    if (missing) context.skip(missing);
    const real = await factsOfAll(realProducts());
    const shown = Object.entries(chapters).map(([title, beginnings]) => ({
      title,
      facts: beginnings.map((beginning) => withPrefix(real, beginning)),
    }));
    expect(shown.flatMap(({ facts }) => facts).length).toBeGreaterThanOrEqual(20);
    const sandbox = {
      title: 'Sentinel-5P (from the sandbox)',
      facts: await factsOfAll(sandboxProducts()),
    };
    const sections = [...shown, sandbox].map(
      ({ title, facts }) => `## ${title}\n\n${facts.map(example).join('\n')}`,
    );
    const page = [head, ...sections, sheetSection(withPrefix(real, 'S2A_MSIL1C_20240912'))].join(
      '\n',
    );
    await expect(page).toMatchFileSnapshot('../../docs/reference/summary-examples.md');
  });
});

/** Returns the product whose name has this prefix; for '' the first one without a name. */
function withPrefix(all: readonly ProductFacts[], beginning: string): ProductFacts {
  const found = all.find(({ name }) =>
    beginning === '' ? name === null : name?.startsWith(beginning),
  );
  if (found === undefined) throw new Error(`No product begins with ${beginning}.`);
  return found;
}

function example(facts: ProductFacts): string {
  return `\`${facts.name ?? facts.id}\`\n\n> ${productText(facts)}\n`;
}

function sheetSection(facts: ProductFacts): string {
  const rows = productSheet(facts).facts.map(({ label, text }) => `| ${label} | ${text} |`);
  return `## Input of a language model

The facts of the first Sentinel-2 tile above, as a model gets them:

| fact | text |
|---|---|
${rows.join('\n')}
`;
}
