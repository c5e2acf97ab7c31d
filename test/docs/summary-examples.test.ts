/**
 * Compares docs/reference/summary-examples.md with the generated texts. To update the page:
 * `npx vitest run test/docs/summary-examples.test.ts --update`.
 */
import { expect, it } from 'vitest';
import { sharedPlaces } from '../../src/features/products/places/places.ts';
import { productFacts, productTemplate } from '../../src/features/summary/facts.ts';
import { missing, recordedProducts } from '../features/summary/found-product.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Beginnings of names. */
const shown = [
  'S1C_IW_GRDH_1SDV_20260121T234824',
  'S1A_IW_GRDH_1SSH_20151129T083510',
  'S1A_IW_SLC__1SSV_20160107T110059',
  'S1A_EW_RAW__0SSH_20151023T110638',
  'S1A_20151223T180128',
  // A record without attributes.
  'S1A_IW_GRDH_1SDV_20240101T055104',
  'S2A_MSIL1C_20240912T112541',
  'S2A_MSIL1C_20150912T101403_N0500_R022_T33TUM',
  'S2A_MSIL1C_20200808T010311_N0500_R045_T55PBR',
  'S3B_OL_1_EFR____20240415T075229',
  'S1A_OPER_AUX_POEORB_OPOD_20210316T193849',
  'S1__AUX_SCS',
  'S1A_AUX_PP1_V20140406T133000_G20240423',
];

const head = `# Examples of summaries

Summaries without a language model: a template with the facts of a product ([Summaries](../summaries.md)). The products
are recorded ones of the catalogue; their time of receipt is set to 46 s after the publication.

Written by \`npx vitest run test/docs/summary-examples.test.ts --update\`.
`;

it.skipIf(missing)(
  'docs/reference/summary-examples.md is current (needs ../shared/fixtures)',
  async () => {
    const found = await recordedProducts(temporaryDirectory());
    const places = sharedPlaces();
    const examples = shown.map((beginning) => {
      const product = found.find(({ row }) => row.productName?.startsWith(beginning));
      if (product === undefined) throw new Error(`No product begins with ${beginning}.`);
      return `\`${product.row.productName}\`\n\n> ${productTemplate(productFacts(product, places))}\n`;
    });
    const page = [head, ...examples].join('\n');
    await expect(page).toMatchFileSnapshot('../../docs/reference/summary-examples.md');
  },
);
