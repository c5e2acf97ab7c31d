/** `earshot query products`: the products that notifications told of, in the catalogue's own terms. */
import { Command, Option } from 'commander';
import type { Io } from '../io.ts';
import { addProductFlags } from '../products/product-flags.ts';
import { productForms, tableRowsDefault } from '../products/product-forms.ts';
import type { QueryProductsFlags } from '../products/query-products.ts';
import { limitOption, outputOption, sinceOption, untilOption } from '../shared-flags.ts';
import { readTime } from '../time-argument.ts';

export function queryProductsCommand(io: Io): Command {
  return addProductFlags(new Command('products'), io)
    .description('Show products in their newest known state, or those that have been deleted.')
    .option(
      '--orderby <order>',
      'received, PublicationDate, ModificationDate, ContentDate/Start, ContentDate/End or DeletionDate; then asc or desc (default: newest first)',
    )
    .addOption(sinceOption(readTime(io), 'first received'))
    .addOption(untilOption(readTime(io), 'first received'))
    .addOption(limitOption({ note: `table: ${tableRowsDefault}, else all` }))
    .option('--after <key>', 'go on after a page; it tells the key')
    .addOption(outputOption(productForms))
    .option('--json', 'short for --output json')
    .option('--columns <names>', 'columns of table and csv, with commas between them')
    .option('--wide', 'print whole names, and all columns of the table, on any terminal')
    .option('--summaries', 'with a text about each, in every form')
    .addOption(
      new Option('--count', 'print how many there are').conflicts([
        'after',
        'limit',
        'output',
        'summaries',
      ]),
    )
    .addOption(
      new Option('--explain', 'print what the flags mean and how it is found').conflicts([
        'count',
        'summaries',
      ]),
    )
    .addHelpText(
      'after',
      `
All flags together must match. Text is compared exactly, and case counts. In --name, * at the end
means "starts with", at the beginning "ends with", and parts between two of them may come in any
order. Of A..B, B is part of the span when it is a day, a month or a year. --deleted shows
tombstones, with the date and cause of deletion.

The table shows what it is sorted by, when it was sensed, satellite, product type, tile or orbit.
Cloud cover, place, name and size follow where the terminal has the width.

json and ndjson: the record as the catalogue sent it. geojson: a FeatureCollection (RFC 7946). ids:
one a line. Columns of csv, and properties of geojson: position productId productName collection
platform productType processingLevel sensingStart sensingEnd publicationDate modificationDate
sizeBytes online cloudCoverPercent orbitNumber relativeOrbitNumber orbitDirection tile
processingBaseline receivedAt deletionDate deletionCause s3Path downloadUrl. Times are ISO 8601 UTC.
downloadUrl is EARSHOT_CATALOGUE_URL/odata/v1/Products(<productId>)/$value, empty for deleted
products; a download needs an access token. A record without attributes has the platform, type,
level, orbit and tile of its name. With --explain, --json gives entity filter orderby narrowedBy
byColumns byRecords plan.

--summaries: the text that \`summarize\` or a rule had written, else one made of the facts alone. In
json, ndjson and geojson it is summary {text model verified createdAt}, in csv the columns summary
summaryModel summaryVerified; ids get it after a tab.

Examples:
  $ earshot query products --collection S2 --tile 31UFR --cloud-below 20 --sensed 7d
  $ earshot query products --bbox 5.5,45,11,48 --published 2026-11 --output geojson > alps.geojson
  $ earshot query products --area area.geojson --type S2MSI2A --count
  $ earshot query products --name 'S2A_MSIL2A_*T32TQM*' --output ids
  $ earshot query products --deleted 7d --output csv
  $ earshot query products --sensed 24h --output csv --columns productName,downloadUrl
  $ earshot query products --published 24h --summaries
  $ earshot query products --filter "Online eq false" --orderby "PublicationDate asc"`,
    )
    .action(async (flags: QueryProductsFlags) => {
      const { queryProducts } = await import('../products/query-products.ts');
      await queryProducts(io, flags);
    });
}
