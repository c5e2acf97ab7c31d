/** The page of a product, `/products/<id>`: its state, notifications, footprint, summary and deliveries. */

import type { ConsoleParts } from '../../../core/api/listener-slot.ts';
import { shellText } from '../../../core/page/browser/texts.ts';
import type { PageContent, PageRequest } from '../../../core/page/layout.ts';
import { type Html, html, panel } from '../../../core/page/markup.ts';
import { isoMinute, linkTo } from '../../../core/page/page-state.ts';
import { renderBlocks, renderReport } from '../../../core/page/render-report.ts';
import { AppError, isAppError } from '../../../core/terms/app-error.ts';
import { hourUs, shortDateUs } from '../../../core/terms/dates.ts';
import type { NotificationRow } from '../../../core/terms/ports.ts';
import { toProductLinks } from '../../../core/terms/read-models.ts';
import {
  type Block,
  code,
  commands,
  empty,
  facts,
  link,
  span,
  table,
  text,
  time,
  type Value,
} from '../../../core/terms/report.ts';
import { byteText, countText, percentText } from '../../../core/terms/text.ts';
import { id, intersects } from '../../../filter/builder.ts';
import type { AnyGeometry, Entity } from '../../../filter/filter-tree.ts';
import { centreOf } from '../../../filter/geometry/shape.ts';
import { printFilter } from '../../../filter/print.ts';
import type { FoundProduct, ProductRow } from '../../../filter/products.ts';
import { partOf } from '../../../filter/values.ts';
import { placeOf } from '../places/places.ts';
import { smallMap } from './product-list.ts';

const notificationsMax = 200;

/** Renders the page. Rejects with `not_found` if nothing was received about the product. */
export async function productPage(parts: ConsoleParts, request: PageRequest): Promise<PageContent> {
  const found = await findProduct(parts, request);
  const notifications = await notificationsOf(parts, found, request.id);
  // The id in the address may differ in case.
  const productId = found?.row.productId ?? request.id;
  if (found === null && notifications.length === 0) {
    const message = `Nothing was received about a product with the id ${productId}.`;
    const advice =
      'Search for its name on the page Products; its notification may be missing or pruned.';
    throw new AppError('not_found', message, { advice });
  }
  const panels = parts.slots.flatMap(({ productPanels = [] }) => productPanels);
  const added = await Promise.all(
    panels.map((one) => one(parts, request, { productId, notifications })),
  );
  const name = found?.row.productName ?? notifications[0]?.productName ?? productId;
  const { nowUs } = request;
  const show = (title: string, blocks: readonly Block[]) => renderReport({ title, blocks }, nowUs);
  return {
    title: name,
    controls: html`<p class="note"><a href="/products">All products</a></p>`,
    body: html`<div class="product">
<div class="aside">${show('State', found === null ? notIndexed : state(found, parts.catalogueUrl))}</div>
<div class="aside">${found === null ? '' : footprintPanel(found, request)}${added}</div></div>
${show('Notifications', received(notifications, productId))}
${found === null ? '' : show('Attributes of the record', attributes(found))}`,
  };
}

/** Finds the newest state of the product, existing or deleted; null if it is not in the index. */
async function findProduct(
  { products }: ConsoleParts,
  { id: productId, signal }: PageRequest,
): Promise<FoundProduct | null> {
  for (const entity of ['Products', 'DeletedProducts'] satisfies Entity[]) {
    const query = { entity, filter: id.eq(productId).tree, limit: 1, footprints: true };
    for await (const found of products.find(query, signal)) return found;
  }
  return null;
}

/** Newest first. The index has their positions; without it, the whole log is searched. */
async function notificationsOf(
  { notifications, products }: ConsoleParts,
  found: FoundProduct | null,
  productId: string,
): Promise<NotificationRow[]> {
  const limit = notificationsMax;
  if (found === null) return Array.fromAsync(notifications.find({ productId, limit }));
  const product = found.row.position;
  const { events } = await products.events({ filter: null, product, limit });
  return Array.fromAsync(notifications.find({ positions: events.map((one) => one.position) }));
}

const notIndexed = [
  empty(
    'The product is not in the product index yet.',
    'Check the lag of the index: `earshot status`',
  ),
];

function state({ row }: FoundProduct, catalogueUrl: string): Block[] {
  const { deletionDateUs, cloudCoverPercent, sizeBytes, online } = row;
  const isDeleted = deletionDateUs !== null;
  const second = (us: number | null) => us && `${shortDateUs(us, 'second')} UTC`;
  const exists: Value = { level: 'ok', text: 'exists' };
  return [
    facts(
      ['state', isDeleted ? { level: 'warning', text: 'deleted' } : exists],
      ['deleted', time(deletionDateUs)],
      ['deletion cause', isDeleted ? (row.deletionCause ?? 'not known') : null],
      ['first received', time(row.receivedAtUs)],
      ['published', time(row.publicationDateUs)],
      ['modified', time(row.modificationDateUs)],
      ['sensing start', second(row.sensingStartUs)],
      ['sensing end', second(row.sensingEndUs)],
      ['collection', row.collection],
      ['platform', row.platform],
      ['product type', row.productType],
      ['processing level', row.processingLevel],
      ['processing baseline', row.processingBaseline],
      ['tile', row.tile],
      ['orbit', row.orbitNumber && String(row.orbitNumber)],
      ['relative orbit', row.relativeOrbitNumber && String(row.relativeOrbitNumber)],
      ['orbit direction', row.orbitDirection],
      ['cloud cover', cloudCoverPercent === null ? null : percentText(cloudCoverPercent / 100)],
      [
        'size',
        sizeBytes === null ? null : `${byteText(sizeBytes)} (${countText(sizeBytes)} bytes)`,
      ],
      ['availability', online === null ? null : online ? 'online' : 'offline'],
      ['id', code(row.productId)],
      ['log position', row.position],
      ...access(row, catalogueUrl),
    ),
    ...(isDeleted ? [] : [text('A download needs an access token of the catalogue.')]),
  ];
}

/** Returns the addresses of the product and of its record. */
function access(row: ProductRow, catalogueUrl: string) {
  const { s3Path, downloadUrl } = toProductLinks(row, catalogueUrl);
  const isDeleted = row.deletionDateUs !== null;
  const entity: Entity = isDeleted ? 'DeletedProducts' : 'Products';
  const record = `/odata/v1/${entity}(${encodeURIComponent(row.productId)})?$expand=Attributes`;
  const filter = String(id.eq(row.productId));
  const feature = { filter, deleted: isDeleted ? 'true' : undefined, format: 'geojson' };
  return [
    ['download', code(downloadUrl)],
    ['S3 path', code(s3Path)],
    ['record', link('JSON record', record)],
    ['feature', link('GeoJSON', linkTo('/api/products', feature))],
  ] as const;
}

function received(rows: readonly NotificationRow[], productId: string): Block[] {
  if (rows.length === 0) return [empty('The notifications of this product were pruned.')];
  const command = `earshot query --product-id=${shellText(productId)} --body`;
  return [
    table(
      'Notifications about the product, newest first',
      [
        { title: 'received (UTC)', value: ({ receivedAtUs }) => time(receivedAtUs) },
        { title: 'event', value: ({ event }) => event },
        { title: 'delay', value: delay, isNumber: true, drop: 1 },
        { title: 'subscription', value: ({ subscription }) => subscription, drop: 1 },
        { title: 'source', value: ({ source }) => source, drop: 2 },
        { title: 'times received', value: ({ timesSeen }) => timesSeen, isNumber: true, drop: 2 },
        {
          title: 'details',
          value: ({ position }) =>
            link('JSON', `/api/notifications?after=${position - 1}&before=${position + 1}`),
        },
      ],
      rows,
    ),
    ...(rows.length < notificationsMax ? [] : [text(`Only the newest ${rows.length} are shown.`)]),
    commands(['Their bodies', command]),
  ];
}

/** Time from NotificationDate to receipt. */
function delay({ notificationDateUs, receivedAtUs, source }: NotificationRow): Value {
  if (notificationDateUs === null || source === 'reconcile') return null;
  return span(Math.max(0, receivedAtUs - notificationDateUs));
}

type Row = readonly (string | null)[];

/** Attributes of the record, as the catalogue sent them. */
function attributes({ record }: FoundProduct): Block[] {
  const list: readonly unknown[] = Array.isArray(record.Attributes) ? record.Attributes : [];
  const rows = list
    .map((item) => ['Name', 'Value', 'ValueType'].map((part) => valueText(partOf(item, part))))
    .filter(([name]) => name !== null)
    .toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
  if (rows.length === 0) return [empty('The record has no attributes.')];
  const columns = [
    { title: 'attribute', value: ([name]: Row) => name ?? null, grows: true },
    { title: 'value', value: ([, value]: Row) => code(value ?? null), grows: true },
    { title: 'type', value: ([, , type]: Row) => type ?? null, drop: 1 },
  ];
  return [table('Attributes of the record', columns, rows)];
}

function valueText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Renders the footprint; an empty state without one. */
function footprintPanel({ row, footprint }: FoundProduct, { assets, nowUs }: PageRequest): Html {
  if (!footprint)
    return panel('Footprint', renderBlocks([empty('The record has no footprint.')], nowUs));
  const map = smallMap([{ row, footprint }], {
    assets,
    fit: true,
    label: 'Footprint of the product',
  });
  const links = neighbourLinks(row, footprint, nowUs);
  return panel(
    'Footprint',
    html`${map}${renderBlocks([facts(['place', placeOf(footprint)])], nowUs)}${links}`,
  );
}

/** Zoom of the map at which 300 pixels are about 13 degrees. */
const neighbourZoom = '5';

/** Links to the products around, and to this one on the map: received up to 12 hours before or after. */
function neighbourLinks(row: ProductRow, footprint: AnyGeometry, nowUs: number): Html {
  const filter = areaFilter(footprint);
  const untilUs = row.receivedAtUs + 12 * hourUs;
  const centre = centreOf(footprint);
  const mapLink = linkTo('/map', {
    filter,
    since: isoMinute(row.receivedAtUs - 12 * hourUs),
    until: untilUs < nowUs ? isoMinute(untilUs) : undefined,
    view: centre
      ?.map((value) => value.toFixed(2))
      .concat(neighbourZoom)
      .join(','),
    selected: row.productId,
  });
  if (filter === undefined) return html`<p><a href="${mapLink}">Show on the map</a></p>`;
  return html`<p><a href="${mapLink}">Neighbours on the map</a> · <a href="${linkTo('/products', { filter })}">as a list</a></p>`;
}

function areaFilter(footprint: AnyGeometry): string | undefined {
  try {
    return printFilter(intersects(footprint).tree);
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}
