/** Keeps the items of a STAC API up to date, by its transaction extension (stac-api-extensions/transaction, v1.0.0). */
import { z } from 'zod';
import { isProblem } from '../../../core/terms/evaluation.ts';
import { jsonOf } from '../../../core/terms/text.ts';
import { partOf } from '../../../filter/values.ts';
import type { Message } from '../../messages/formats.ts';
import { defineSinkKind, type TargetAnswer, unusable } from '../target.ts';
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
    stac: serviceUrl.optional(),
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
        if (message.document.test === true) return checkTransactions(client, settings.url, signal);
        const item: Item = JSON.parse(message.text);
        const key = `${item.collection} ${item.id}`;
        const done = (last.get(key) ?? Promise.resolve()).then(() =>
          message.document.event === 'deleted'
            ? remove(client, settings.url, { item, message, signal })
            : write(client, settings, { item, signal }),
        );
        last.set(key, done);
        const answer = await done;
        if (last.get(key) === done) last.delete(key);
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

const collectionUrl = (url: string, { collection }: Item) =>
  `${url}/collections/${encodeURIComponent(collection)}`;

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
  const items = `${collectionUrl(url, item)}/items`;
  const links = item.links.filter(({ rel }) => !ownLinks.has(rel));
  const content = { headers: geoJson, body: JSON.stringify({ ...item, links }) };
  const create = { method: 'POST', url: items, ...content };
  let { status, answer } = await client.send(create, signal);
  if (missingCollection.has(status)) {
    const created = await createCollection(client, { url, createCollections }, { item, signal });
    if (created.kind !== 'acknowledged') return created;
    ({ status, answer } = await client.send(create, signal));
  }
  if (status !== 409) return answer;
  const replace = { method: 'PUT', url: `${items}/${encodeURIComponent(item.id)}`, ...content };
  return (await client.send(replace, signal)).answer;
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
  if (!createCollections) {
    const reason = `it has no collection ${item.collection}: create it, or remove createCollections`;
    return { kind: 'refused', reason };
  }
  const body = JSON.stringify(newCollection(item));
  const request = { method: 'POST', url: `${url}/collections`, headers: json, body };
  const { status, answer } = await client.send(request, signal);
  return status === 409 ? { kind: 'acknowledged' } : answer;
}

/** Deletes the item, unless it is missing, or by now the item of another product with the same name. */
async function remove(
  client: Client,
  url: string,
  { item, message, signal }: Context & { message: Message },
): Promise<TargetAnswer> {
  const itemUrl = `${collectionUrl(url, item)}/items/${encodeURIComponent(item.id)}`;
  const { productId } = message.document;
  if (item.id !== productId) {
    const found = await client.send({ method: 'GET', url: itemUrl }, signal, { readsBody: true });
    if (found.answer.kind !== 'acknowledged' && found.status !== 404) return found.answer;
    if (found.status === 404) return { kind: 'acknowledged' };
    if (jsonOf(found.text) === undefined) {
      return { kind: 'refused', reason: 'its item is no JSON, or too large to be compared' };
    }
    if (!found.text.toLowerCase().includes(productId.toLowerCase())) {
      return { kind: 'acknowledged' };
    }
  }
  const { status, answer } = await client.send({ method: 'DELETE', url: itemUrl }, signal);
  return status === 404 ? { kind: 'acknowledged' } : answer;
}

/** A test delivery must not leave an item. */
async function checkTransactions(
  client: Client,
  url: string,
  signal: AbortSignal,
): Promise<TargetAnswer> {
  const { answer, text } = await client.send({ method: 'GET', url }, signal, { readsBody: true });
  const classes = partOf(jsonOf(text), 'conformsTo');
  const isListed =
    Array.isArray(classes) && classes.some((one) => /transaction|simpletx/.test(String(one)));
  if (answer.kind !== 'acknowledged' || isListed) return answer;
  return { kind: 'misconfigured', reason: 'it does not list the transaction extension' };
}
