/** Follows new notifications, and prints where to download each product with little cloud. Misses none. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';

const [origin = 'http://127.0.0.1:8080'] = process.argv.slice(2);
const cloudMaxPercent = 20;

/** Position of the last notification that was processed, so that a restart continues there. */
const positionFile = 'position.txt';

interface Notification {
  position: number;
  productId: string;
}

interface Item {
  properties: Record<string, unknown>;
  assets: Record<string, { href: string } | undefined>;
}

async function getJson<Answer>(path: string, parameters: Record<string, string>): Promise<Answer> {
  const url = new URL(`${path}?${new URLSearchParams(parameters)}`, origin);
  const answer = await fetch(url, { signal: AbortSignal.timeout(60_000) });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Answer;
}

/** Put your own work here. It must bear repetition: after a crash, the last page is processed again. */
function act({ properties, assets }: Item): void {
  console.log(properties.datetime, properties.title, assets.s3?.href);
}

/** Processes the notifications after the stored position that the product index has read, oldest first. */
async function catchUp(indexedPosition: number): Promise<void> {
  for (;;) {
    const after = existsSync(positionFile) ? readFileSync(positionFile, 'utf8').trim() : '0';
    const range = { after, before: String(indexedPosition + 1), order: 'oldest' };
    const { notifications } = await getJson<{ notifications: Notification[] }>(
      '/api/notifications',
      { ...range, event: 'created', limit: '100' },
    );
    const last = notifications.at(-1);
    if (last === undefined) return;
    const ids = [...new Set(notifications.map(({ productId }) => productId))].join(',');
    const filter = `eo:cloud_cover < ${cloudMaxPercent}`;
    const found = await getJson<{ features: Item[] }>('/stac/search', {
      ids,
      filter,
      limit: '100',
    });
    for (const item of found.features) act(item);
    writeFileSync(positionFile, `${last.position}\n`);
  }
}

// One catch-up runs at a time.
let running: Promise<void> = Promise.resolve();

// The feed says how far the index is, first after each connection. A lost connection is opened again.
const feed = new EventSource(new URL('/api/live', origin));
feed.addEventListener('update', (event) => {
  const { data } = event as unknown as { data: string };
  const { indexedPosition } = JSON.parse(data) as { indexedPosition: number | null };
  running = running
    .then(() => catchUp(indexedPosition ?? 0))
    .catch((error: unknown) => console.error(error));
});
