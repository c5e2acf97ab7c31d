/** Keeps the items of a STAC API up to date, by its transaction extension (stac-api-extensions/transaction, v1.0.0). */
import { z } from 'zod';
import { isProblem } from '../../../core/terms/evaluation.ts';
import { jsonOf } from '../../../core/terms/text.ts';
import { partOf } from '../../../filter/values.ts';
import type { Message } from '../../messages/formats.ts';
import { defineSinkKind, type TargetAnswer, unavailable, unusable } from '../target.ts';
import {
  checkHost,
  createHttpClient,
  type HttpSettings,
  httpFields,
  httpSettings,
  serviceUrl,
} from './http-client.ts';

export interface StacSettings extends HttpSettings {
  createCollections: boolean;
}

type Client = ReturnType<typeof createHttpClient>;

const stacUrl = serviceUrl.refine((url) => !url.includes('?'), 'must not contain ?');

/** The part of an item that the requests need. */
interface Item {
  stac_version: string;
  id: string;
  collection: string;
  links: readonly { rel: string }[];
}

/**
 * Creates the item of each product, replaces it if it exists, and deletes it: a repetition changes nothing. Creates a
 * missing collection. Requests for an item follow each other.
 */
export const stac = defineSinkKind({
  fields: {
    /** The URL of a STAC API with the transaction extension. */
    stac: stacUrl.optional(),
    /** False: an item whose collection is missing is refused. By default, missing collections are created. */
    createCollections: z.boolean('must be true or false').optional(),
    ...httpFields,
  },
  faults: ({ stac: url, createCollections }) =>
    createCollections !== undefined && url === undefined ? ['createCollections requires stac'] : [],
  format: 'stac',
  concurrency: 8,
  settings: (sink, readFile): StacSettings => {
    const { stac: url = '', createCollections = true } = sink;
    return { ...httpSettings(url.replace(/\/+$/, ''), sink, readFile), createCollections };
  },
  open: (settings) => {
    const client = createHttpClient(settings);
    /** The last request for each item: products can share a name, and so an item. */
    const last = new Map<string, Promise<unknown>>();
    return {
      deliver: async (message, signal) => {
        const { document, text } = message;
        if (document.test === true) return checkTransactions(client, settings.url, signal);
        const isDeleted = document.event === 'deleted';
        // Without a record, the item would lose its values.
        if (!isDeleted && document.value === null) return { kind: 'acknowledged' };
        const item: Item = JSON.parse(text);
        if ([item.id, item.collection].some((part) => /^\.{0,2}$/.test(part))) {
          return { kind: 'refused', reason: 'the product id or name is no part of a path' };
        }
        const done = (last.get(item.id) ?? Promise.resolve()).then(() =>
          isDeleted
            ? remove(client, settings.url, { item, message, signal })
            : write(client, settings, { item, signal }),
        );
        last.set(item.id, done);
        const answer = await done;
        if (last.get(item.id) === done) last.delete(item.id);
        return answer;
      },
      close: client.close,
    };
  },
  check: async (settings, { signal }) => {
    const reached = await checkHost(settings, signal);
    if (isProblem(reached)) return reached;
    const client = createHttpClient(settings);
    const answer = await checkTransactions(client, settings.url, signal);
    await client.close();
    if (answer.kind === 'acknowledged') return reached;
    return unusable(new URL(settings.url).host, answer.reason);
  },
});

const json = { 'content-type': 'application/json' };
const geoJson = { 'content-type': 'application/geo+json' };

const itemsUrl = (url: string, { collection }: Pick<Item, 'collection'>) =>
  `${url}/collections/${encodeURIComponent(collection)}/items`;

const itemUrl = (url: string, item: Pick<Item, 'id' | 'collection'>) =>
  `${itemsUrl(url, item)}/${encodeURIComponent(item.id)}`;

/** Links that a STAC API adds to its items itself. */
const ownLinks = new Set(['self', 'root', 'parent', 'collection']);

/** Statuses of an item whose collection is missing; pgstac reports a violated foreign key. */
const missingCollection = new Set([404, 424]);

interface Context {
  item: Item;
  signal: AbortSignal;
}

/** Creates the item; replaces it if it exists. */
async function write(
  client: Client,
  { url, createCollections }: StacSettings,
  { item, signal }: Context,
): Promise<TargetAnswer> {
  const links = item.links.filter(({ rel }) => !ownLinks.has(rel));
  const content = { headers: geoJson, body: JSON.stringify({ ...item, links }) };
  const create = { method: 'POST', url: itemsUrl(url, item), ...content };
  let { status, answer } = await client.send(create, signal);
  if (missingCollection.has(status)) {
    const created = await createCollection(client, { url, createCollections }, { item, signal });
    if (created.kind !== 'acknowledged') return created;
    ({ status, answer } = await client.send(create, signal));
  }
  if (status !== 409) return answer;
  const replace = { method: 'PUT', url: itemUrl(url, item), ...content };
  const replaced = await client.send(replace, signal);
  // Another program deleted the item meanwhile.
  return replaced.status === 404 ? unavailable('it has no such item any more') : replaced.answer;
}

/** Returns a collection of which only the id is known. The extent is required, so it is the largest one. */
function newCollection({ collection: id, stac_version }: Item) {
  return {
    ...{ type: 'Collection', stac_version, id, links: [], license: 'various' },
    description: `Products of ${id}, as earshot receives them.`,
    extent: {
      spatial: { bbox: [[-180, -90, 180, 90]] },
      temporal: { interval: [['1970-01-01T00:00:00Z', null]] },
    },
  };
}

/** Creates a missing collection. Another program may have created it meanwhile. */
async function createCollection(
  client: Client,
  { url, createCollections }: Pick<StacSettings, 'url' | 'createCollections'>,
  { item, signal }: Context,
): Promise<TargetAnswer> {
  const missing = `it has no collection ${item.collection}: create it`;
  if (!createCollections) {
    return { kind: 'refused', reason: `${missing}, or remove createCollections` };
  }
  const body = JSON.stringify(newCollection(item));
  const request = { method: 'POST', url: `${url}/collections`, headers: json, body };
  const { status, answer } = await client.send(request, signal);
  if (status === 409) return { kind: 'acknowledged' };
  // Only items of this collection are concerned.
  const isOwn = answer.kind === 'misconfigured' && status !== 401;
  return isOwn ? { kind: 'refused', reason: `${missing}, because ${answer.reason}` } : answer;
}

/**
 * Deletes the item, unless it is missing, or by now the item of another product with the same name. Searches for it:
 * deletions often lack the product type, and so the collection.
 */
async function remove(
  client: Client,
  url: string,
  { item, message, signal }: Context & { message: Message },
): Promise<TargetAnswer> {
  const { productId } = message.document;
  const search = `${url}/search?ids=${encodeURIComponent(item.id)}`;
  const found = await client.send({ method: 'GET', url: search }, signal, { readsBody: true });
  if (found.answer.kind !== 'acknowledged') return found.answer;
  const { features } = foundItems.safeParse(jsonOf(found.text)).data ?? {};
  if (features === undefined) return { kind: 'refused', reason: 'its search is no list of items' };
  const own = features.filter((one) => {
    const mentions = () => JSON.stringify(one).toLowerCase().includes(productId.toLowerCase());
    return one.id === item.id && (item.id === productId || mentions());
  });
  for (const one of own) {
    const request = { method: 'DELETE', url: itemUrl(url, one) };
    const { status, answer } = await client.send(request, signal);
    if (status !== 404 && answer.kind !== 'acknowledged') return answer;
  }
  return { kind: 'acknowledged' };
}

const foundItems = z.object({
  features: z.array(z.looseObject({ id: z.string(), collection: z.string() })),
});

/** Checks the extension, and the login by deleting an item that does not exist: a test delivery must not leave one. */
async function checkTransactions(
  client: Client,
  url: string,
  signal: AbortSignal,
): Promise<TargetAnswer> {
  // Smaller than the landing page, which may list every collection.
  const conformance = { method: 'GET', url: `${url}/conformance` };
  const { answer, text } = await client.send(conformance, signal, { readsBody: true });
  const classes = partOf(jsonOf(text), 'conformsTo');
  const isListed =
    Array.isArray(classes) && classes.some((one) => /transaction|simpletx/.test(String(one)));
  if (answer.kind !== 'acknowledged') return answer;
  if (!isListed) {
    return { kind: 'misconfigured', reason: 'it does not list the transaction extension' };
  }
  const item = { id: 'earshot-test', collection: 'earshot-test' };
  const deletion = await client.send({ method: 'DELETE', url: itemUrl(url, item) }, signal);
  const isKnown = deletion.status !== 401 && deletion.status !== 403;
  return isKnown ? { kind: 'acknowledged' } : deletion.answer;
}
