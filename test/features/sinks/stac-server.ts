/**
 * A STAC API with the transaction extension on loopback, written from stac-api-extensions/transaction v1.0.0 and
 * collection-transaction v1.0.0.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { listening } from '../../helpers/tcp-server.ts';

interface StoredItem {
  id: string;
  collection: string;
  type: string;
  properties: Record<string, unknown>;
  links: { rel: string; href: string }[];
}

interface Answered {
  request: string;
  status: number;
}

/** Returns a status instead of serving the request; undefined serves it. May wait. */
type Before = (request: string) => number | undefined | Promise<number | undefined>;

/** `missingStatus`: answer to an item whose collection is missing. */
interface Options {
  conformsTo?: string[];
  token?: string;
  /** True: reading needs no token. */
  isPublic?: boolean;
  missingStatus?: number;
}

export async function startStacServer(options: Options = {}) {
  const {
    conformsTo = ['https://api.stacspec.org/v1.0.0/ogcapi-features/extensions/transaction'],
  } = options;
  const collections = new Map<string, Map<string, StoredItem>>();
  const answered: Answered[] = [];
  let before: Before = () => undefined;

  const put = (items: Map<string, StoredItem>, name: string, body: string, known: boolean) => {
    const item: StoredItem = JSON.parse(body);
    const isValid = item.type === 'Feature' && item.collection === name && item.id !== '';
    if (!isValid) return 400;
    if (items.has(item.id) !== known) return known ? 404 : 409;
    items.set(item.id, item);
    return known ? 200 : 201;
  };
  const serve = (method: string, path: string, body: string): [status: number, body?: object] => {
    const [, name = '', kind, id = ''] = path.split(/[/=]/).slice(1).map(decodeURIComponent);
    if (path === '/conformance') return [200, { conformsTo }];
    if (path.startsWith('/search?ids=')) {
      const found = [...collections.values()].flatMap((items) => items.get(name) ?? []);
      return [200, { type: 'FeatureCollection', features: found }];
    }
    if (path === '/collections' && method === 'POST') {
      const { id: created, type } = JSON.parse(body);
      if (type !== 'Collection') return [400];
      if (collections.has(created)) return [409];
      collections.set(created, new Map());
      return [201];
    }
    const items = collections.get(name);
    if (kind !== 'items') return [404];
    if (items === undefined) return [method === 'POST' ? (options.missingStatus ?? 404) : 404];
    if (method === 'POST' && id === '') return [put(items, name, body, false)];
    if (method === 'PUT')
      return JSON.parse(body).id === id ? [put(items, name, body, true)] : [400];
    if (method === 'DELETE') return [items.delete(id) ? 204 : 404];
    const item = items.get(id);
    return item === undefined ? [404] : [200, item];
  };
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const { method = '', url = '', headers } = request;
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    const name = `${method} ${url}`;
    const isKnown =
      options.token === undefined ||
      (options.isPublic === true && method === 'GET') ||
      headers.authorization === `Bearer ${options.token}`;
    const [status, answer] = isKnown ? serve(method, url, body) : [401];
    const changed = (await before(name)) ?? status;
    answered.push({ request: name, status: changed });
    response.writeHead(changed, { 'content-type': 'application/json' });
    response.end(answer === undefined ? undefined : JSON.stringify(answer));
  });
  const port = await listening(server);
  return {
    url: `http://127.0.0.1:${port}`,
    answered,
    requests: () => answered.map(({ request, status }) => `${request} ${status}`),
    items: () => [...collections.values()].flatMap((items) => [...items.values()]),
    collections: () => [...collections.keys()],
    change: (next: Before) => {
      before = next;
    },
  };
}
