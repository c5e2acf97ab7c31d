/** The page of a product, `/products/<id>`: its state, notifications, footprint, summary and deliveries. */
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import type { Entity } from '../../domain/filter-tree.ts';
import { byteText } from '../../domain/formats.ts';
import { toProductLinks } from '../../domain/json-rows.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { FoundProduct } from '../../domain/products.ts';
import type { SinkItem } from '../../domain/sinks.ts';
import type { SummaryRow } from '../../domain/summaries.ts';
import { id } from '../../filter/builder.ts';
import { partOf } from '../../filter/product-record.ts';
import { eventTones, shellText, spanText } from './browser/texts.ts';
import type { PageContent } from './layout.ts';
import {
  badge,
  command,
  copyButton,
  count,
  emptyState,
  facts,
  type Html,
  html,
  panel,
  table,
  time,
  withCommands,
} from './markup.ts';
import type { PageParts, PageRequest } from './page-route.ts';
import { linkTo } from './page-state.ts';
import { footprintPanel } from './product-footprint.ts';
import { summaryBadge, summaryBody } from './summaries.ts';

const notificationsMax = 200;

/** Items of sinks that are searched for the product, in each state. */
const itemsExaminedMax = 5_000;

/** Renders the page. Rejects with `not_found` if nothing was received about the product. */
export async function productPage(parts: PageParts, request: PageRequest): Promise<PageContent> {
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
  const [summaries, deliveries] = await Promise.all([
    Array.fromAsync(parts.summaries.find({ kind: 'product', productId, limit: 1 })),
    deliveriesPanel(parts, request, { productId, notifications }),
  ]);
  const name = found?.row.productName ?? notifications[0]?.productName ?? productId;
  const { nowUs } = request;
  const link = found === null ? null : toProductLinks(found.row, parts.catalogueUrl).downloadUrl;
  const download =
    link === null
      ? ''
      : html`<a href="${link}" title="Needs an access token of the catalogue">Download</a> · `;
  return {
    title: name,
    controls: html`<p class="note">${download}<a href="/products" data-back>All products</a></p>`,
    body: html`<div class="product">
<div class="aside">${found === null ? notIndexed() : statePanel(found, nowUs)}</div>
<div class="aside">${found === null ? '' : footprintPanel(found, request)}${summaryPanel(summaries[0], productId, nowUs)}${deliveries}</div></div>
${notificationsPanel(notifications, nowUs)}
${accessPanel(found, productId, parts.catalogueUrl)}
${found === null ? '' : attributesPanel(found)}`,
  };
}

/** Finds the newest state of the product, existing or deleted; null if it is not in the index. */
async function findProduct(
  { products }: PageParts,
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
  { notifications, products }: PageParts,
  found: FoundProduct | null,
  productId: string,
): Promise<NotificationRow[]> {
  const limit = notificationsMax;
  if (found === null) return Array.fromAsync(notifications.find({ productId, limit }));
  const product = found.row.position;
  const { events } = await products.events({ filter: null, product, limit });
  const rows = events.map(({ position }) =>
    Array.fromAsync(
      notifications.find({ afterPosition: position - 1, beforePosition: position + 1, limit: 1 }),
    ),
  );
  return (await Promise.all(rows)).flat();
}

function notIndexed(): Html {
  return panel(
    'State',
    emptyState(
      'The product is not in the product index yet.',
      html`Check the index: ${withCommands('`earshot admin index`')}`,
    ),
  );
}

function statePanel({ row }: FoundProduct, nowUs: number): Html {
  const isDeleted = row.deletionUs !== null;
  const state = isDeleted
    ? html`${badge('warn', 'deleted')} ${time(row.deletionUs, nowUs)}`
    : badge('good', 'exists');
  const online =
    row.online === null ? null : row.online ? badge('good', 'online') : badge('plain', 'offline');
  const known = (us: number | null) => (us === null ? null : time(us, nowUs));
  return panel(
    'State',
    facts([
      ['state', state],
      ['deletion cause', isDeleted ? (row.deletionCause ?? 'not known') : null],
      ['first received', time(row.receivedAtUs, nowUs)],
      ['published', known(row.publicationUs)],
      ['modified', known(row.modificationUs)],
      [
        'sensing start (UTC)',
        row.sensingStartUs === null ? null : shortDateUs(row.sensingStartUs, 'second'),
      ],
      [
        'sensing end (UTC)',
        row.sensingEndUs === null ? null : shortDateUs(row.sensingEndUs, 'second'),
      ],
      ['collection', row.collection],
      ['platform', row.platform],
      ['product type', row.productType],
      ['processing level', row.processingLevel],
      ['processing baseline', row.processingBaseline],
      ['tile', row.tile],
      ['orbit', row.orbitNumber],
      ['relative orbit', row.relativeOrbitNumber],
      ['orbit direction', row.orbitDirection],
      [
        'cloud cover',
        row.cloudCoverPercent === null ? null : `${Number(row.cloudCoverPercent.toFixed(2))} %`,
      ],
      [
        'size',
        row.sizeBytes === null
          ? null
          : `${byteText(row.sizeBytes)} (${count(row.sizeBytes)} bytes)`,
      ],
      ['availability', online],
      ['id', html`<code>${row.productId}</code> ${copyButton(row.productId, 'Copy')}`],
      ['log position', count(row.position)],
    ]),
  );
}

function notificationsPanel(rows: readonly NotificationRow[], nowUs: number): Html {
  if (rows.length === 0) {
    return panel('Notifications', emptyState('The notifications of this product were pruned.'));
  }
  const remark =
    rows.length < notificationsMax
      ? `${count(rows.length)}, newest first`
      : `the newest ${count(rows.length)}`;
  return panel(
    'Notifications',
    table(
      [
        { title: 'received (UTC)', value: (row) => time(row.receivedAtUs, nowUs) },
        {
          title: 'event',
          value: ({ event }) => badge(eventTones[event] ?? 'plain', event),
        },
        { title: 'delay', value: delayText, isNumber: true, class: 'rank-4' },
        { title: 'subscription', value: ({ subscription }) => subscription, class: 'rank-4' },
        { title: 'source', value: ({ source }) => source, class: 'rank-3' },
        {
          title: 'times received',
          value: ({ timesSeen }) => count(timesSeen),
          isNumber: true,
          class: 'rank-3',
        },
        {
          title: 'details',
          value: ({ position }) =>
            html`<a href="/api/notifications?after=${position - 1}&amp;before=${position + 1}">JSON</a>`,
        },
      ],
      rows,
      { caption: 'Notifications about the product, newest first', list: true },
    ),
    remark,
  );
}

/** Time from NotificationDate to receipt. */
function delayText({ notificationDateUs, receivedAtUs, source }: NotificationRow): string | null {
  if (notificationDateUs === null || source === 'reconcile') return null;
  return spanText(Math.max(0, (receivedAtUs - notificationDateUs) / 1_000_000));
}

function summaryPanel(row: SummaryRow | undefined, productId: string, nowUs: number): Html {
  if (row === undefined) {
    const text = `earshot summarize --each --filter ${shellText(String(id.eq(productId)))}`;
    const next = html`To write one:${command(text)}`;
    return panel('Summary', emptyState('No summary of this product was requested.', next));
  }
  return panel('Summary', summaryBody(row), summaryBadge(row, nowUs));
}

interface SinkLine {
  sink: string;
  state: Html;
  detail: string;
}

/** A delivered item leaves no trace, so the state follows from the position of the sink and from its open items. */
async function deliveriesPanel(
  { sinks }: PageParts,
  { status }: PageRequest,
  { productId, notifications }: { productId: string; notifications: readonly NotificationRow[] },
): Promise<Html> {
  const counts = await sinks.counts();
  if (counts.length === 0) {
    const next =
      'A sink passes notifications on to another program; it is defined in earshot.config.ts.';
    return panel('Deliveries to sinks', emptyState('There is no sink.', next));
  }
  const [dead, waiting] = await Promise.all([
    itemsOf({ sinks }, 'dead', productId),
    itemsOf({ sinks }, 'waiting', productId),
  ]);
  const last = Math.max(0, ...notifications.map(({ position }) => position));
  const lines = counts.map(({ sink }): SinkLine => {
    const [failed] = dead.filter((one) => one.sink === sink);
    const [open] = waiting.filter((one) => one.sink === sink);
    if (failed !== undefined) {
      return { sink, state: badge('bad', 'dead letter'), detail: attemptsText(failed) };
    }
    if (open !== undefined) {
      return { sink, state: badge('note', 'pending'), detail: attemptsText(open) };
    }
    const reader = status.readers.find(({ of, name }) => of === 'sink' && isReaderOf(name, sink));
    if (reader !== undefined && reader.position < last) {
      return {
        sink,
        state: badge('note', 'not read yet'),
        detail: 'The sink has not reached the notification.',
      };
    }
    return {
      sink,
      state: badge('good', 'no open delivery'),
      detail: 'Delivered, or not selected by the rules of the sink.',
    };
  });
  const columns = [
    { title: 'sink', value: ({ sink }: SinkLine) => sink },
    { title: 'state', value: ({ state }: SinkLine) => state },
    { title: 'detail', value: ({ detail }: SinkLine) => detail },
  ];
  const remark = html`<a href="/sinks">all sinks</a>`;
  return panel(
    'Deliveries to sinks',
    table(columns, lines, { caption: 'Deliveries to sinks' }),
    remark,
  );
}

const isReaderOf = (name: string, sink: string) => name === `sink ${sink}`;

async function itemsOf(
  { sinks }: Pick<PageParts, 'sinks'>,
  state: SinkItem['state'],
  productId: string,
): Promise<SinkItem[]> {
  const own: SinkItem[] = [];
  for await (const item of sinks.items({ state, limit: itemsExaminedMax })) {
    if (item.productId === productId) own.push(item);
  }
  return own;
}

function attemptsText({ attempts, error }: SinkItem): string {
  const tried = attempts === 1 ? '1 attempt' : `${count(attempts)} attempts`;
  return error === null ? tried : `${tried}: ${error}`;
}

interface Property {
  name: string;
  value: string;
  type: string;
}

/** Attributes of the record, as the catalogue sent them. */
function attributesPanel({ record }: FoundProduct): Html {
  const list: readonly unknown[] = Array.isArray(record.Attributes) ? record.Attributes : [];
  const rows = list.flatMap((item): Property[] => {
    const [name, value, type] = [
      partOf(item, 'Name'),
      partOf(item, 'Value'),
      partOf(item, 'ValueType'),
    ];
    if (typeof name !== 'string') return [];
    return [
      {
        name,
        value: valueText(value),
        type: valueText(type),
      },
    ];
  });
  if (rows.length === 0) {
    return panel('Attributes', emptyState('The record has no attributes.'));
  }
  const sorted = rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const columns = [
    { title: 'attribute', value: ({ name }: Property) => name },
    { title: 'value', value: ({ value }: Property) => html`<span class="name">${value}</span>` },
    { title: 'type', value: ({ type }: Property) => type },
  ];
  return html`<details class="panel"><summary>Attributes of the record (${count(rows.length)})</summary>
${table(columns, sorted, { caption: 'Attributes of the record' })}</details>`;
}

function valueText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function accessPanel(found: FoundProduct | null, productId: string, catalogueUrl: string): Html {
  const query = command(`earshot query --product-id=${shellText(productId)} --body`);
  if (found === null) return panel('Access', query);
  const { s3Path, downloadUrl } = toProductLinks(found.row, catalogueUrl);
  const isDeleted = found.row.deletionUs !== null;
  const entity: Entity = isDeleted ? 'DeletedProducts' : 'Products';
  const copied = (text: string) => html`<code>${text}</code> ${copyButton(text, 'Copy')}`;
  const filter = String(id.eq(found.row.productId));
  const feature = linkTo('/api/products', {
    filter,
    deleted: isDeleted ? 'true' : undefined,
    format: 'geojson',
  });
  return panel(
    'Access',
    html`${facts([
      ['download', downloadUrl === null ? null : copied(downloadUrl)],
      ['S3 path', s3Path === null ? null : copied(s3Path)],
      [
        'other formats',
        html`<a href="/odata/v1/${entity}(${encodeURIComponent(productId)})?$expand=Attributes">JSON record</a> · <a href="${feature}">GeoJSON</a>`,
      ],
    ])}${query}`,
    isDeleted ? '' : 'A download needs an access token of the catalogue.',
  );
}
