import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Cluster, checkCluster, startCluster, startSenders } from './cluster.ts';
import { createDatabase, hasPostgres, query, useServer } from './shared-log-context.ts';

interface Delivered {
  position: number;
  productId: string;
}

/** A web service that records what a sink delivers. */
async function startService() {
  const delivered: Delivered[] = [];
  const server = createServer((request, response) => {
    void json(request).then((document) => {
      delivered.push((document as { data: Delivered }).data);
      response.end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}/`, delivered };
}

async function holderOf(url: string, lease: string, { nodes }: Cluster) {
  const rows = await query<{ name: string; term: string }>(
    url,
    `SELECT node.name, term FROM earshot.lease JOIN earshot.node ON node.id = holder
     WHERE lease.name = $1 AND expires_at > clock_timestamp()`,
    [lease],
  );
  const [row] = rows;
  const node = nodes.find(({ name }) => name === row?.name);
  return row === undefined || node === undefined ? null : { node, term: Number(row.term) };
}

describe.runIf(hasPostgres)('the receiver that delivers to sinks', () => {
  const server = useServer();

  it('is replaced within 30 seconds when it is paused, and does not interfere when it resumes', async () => {
    const url = await createDatabase(server());
    const service = await startService();
    const config = `export default { sinks: { hook: { webhook: '${service.url}' } } };`;
    const cluster = await startCluster({ url, config });
    const sent = startSenders(cluster.post, {
      ...{ senders: 8, pauseMs: 40 },
      // Few products, so that the order matters.
      fieldsOf: (number) => ({
        ProductId: `product-${number % 50}`,
        SubscriptionEvent: 'modified',
      }),
    });
    await expect.poll(() => service.delivered.length).toBeGreaterThan(200);
    await expect.poll(() => holderOf(url, 'sinks', cluster)).not.toBeNull();
    const first = await holderOf(url, 'sinks', cluster);
    if (first === null) throw new Error('No receiver delivers.');
    const { pid } = first.node.receiver();
    process.kill(pid, 'SIGSTOP');
    const pausedMs = performance.now();
    const takenOver = async () => {
      const holder = await holderOf(url, 'sinks', cluster);
      return holder !== null && holder.term > first.term;
    };
    await expect.poll(takenOver, { timeout: 40_000, interval: 200 }).toBe(true);
    const seconds = (performance.now() - pausedMs) / 1_000;
    const before = service.delivered.length;
    await expect.poll(() => service.delivered.length).toBeGreaterThan(before + 100);
    process.kill(pid, 'SIGCONT');
    await expect.poll(() => first.node.receiver().log()).toContain('lost a lease');
    await delay(1_000);
    await sent.stop();
    const known = () => new Set(service.delivered.map(({ position }) => position)).size;
    await expect.poll(known, { timeout: 60_000 }).toBe(new Set(sent.answered).size);
    const { stored } = await checkCluster(url, cluster, sent.answered);
    expect(inOrder(service.delivered)).toBe(true);
    const repeated = service.delivered.length - stored;
    process.stdout.write(
      `takeover after ${seconds.toFixed(1)} s, ${stored} delivered, ${repeated} of them twice\n`,
    );
    expect(seconds).toBeLessThan(30);
    expect(repeated).toBeLessThan(stored / 2);
    expect(Object.fromEntries(sent.refused)).toEqual({});
  }, 240_000);
});

/** True if the first deliveries of each product are in the order of their positions. */
function inOrder(delivered: readonly Delivered[]): boolean {
  const seen = new Set<number>();
  const last = new Map<string, number>();
  for (const { position, productId } of delivered) {
    if (seen.has(position)) continue;
    seen.add(position);
    if (position < (last.get(productId) ?? 0)) return false;
    last.set(productId, position);
  }
  return true;
}
