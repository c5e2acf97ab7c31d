/** A receiver with three days of history in a real store, as `start` composes it, for tests of the web page. */

import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatDateUs, hourUs } from '../../../src/core/terms/dates.ts';
import { missingFinding } from '../../../src/features/subscriptions/checks.ts';
import { type RunningReceiver, serve } from '../../../src/receiver/serve.ts';
import { createProductGenerator } from '../../../src/sandbox/products/product-generator.ts';
import type { Store } from '../../../src/store/store.ts';
import { delivery, notification } from '../../helpers/deliveries.ts';
import { testIo } from '../../helpers/fake-io.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { runningJobs, type ShownJobs } from '../../helpers/running-jobs.ts';
import { openStore } from '../../helpers/store.ts';
import { loopback, serveConfig } from '../../receiver/serve-config.ts';
import { fillOperation, jobsWith, registerRunning } from './seeded-operation.ts';

const pair = { username: 'catalogue', password: 'a-password-of-32-characters-000' };
const dayUs = 24 * hourUs;

export type Generator = ReturnType<typeof createProductGenerator>;
export type PublishedProduct = ReturnType<Generator['next']>;
type DeletedProduct = ReturnType<Generator['deleted']>;

/** Facts of the history, for assertions. */
export interface History {
  nowUs: number;
  /** Products of the subscription `alps`, oldest first. */
  products: PublishedProduct[];
  /** Start of yesterday's hour with missing events. */
  missingHourUs: number;
}

export interface SeededReceiver extends History {
  receiver: RunningReceiver;
  /** Address of the web page, without a slash at the end. */
  url: string;
  generator: Generator;
  /** Pushes a notification about a product to the public listener. Resolves with the status. */
  push(product: PublishedProduct, event?: string): Promise<number>;
  /** Stops the receiver and starts it again on the same port, after `between` has ended. */
  restart(between?: () => Promise<void>): Promise<void>;
  close(): Promise<void>;
}

/** Another history, with its own clock and background jobs. */
export interface Plan {
  nowUs: () => number;
  jobs: ShownJobs;
  fill(store: Store, generator: Generator): Promise<History>;
}

/** Opens the receiver. `products` is the number in three days; the alerts and the quarantine are always filled. */
export async function openSeeded({
  products = 400,
  plan = {
    nowUs: realNowUs,
    jobs: jobsWith({ archive: 'command', hook: 'webhook' }),
    fill: (store: Store, generator: Generator) => fill(store, generator, products),
  },
}: {
  products?: number;
  plan?: Plan;
} = {}): Promise<SeededReceiver> {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-page-'));
  const dataDir = join(folder, 'data');
  const generator = createProductGenerator({ seed: 7 });
  const { nowUs } = plan;
  const store = await openStore({ dataDir, diskReserveBytes: undefined });
  const history = await plan.fill(store, generator).finally(() => store.close());
  let receiver = await serveFolder(dataDir, loopback, plan);
  await untilIndexed(receiver);
  const url = receiver.consoleUrl ?? '';
  const { port } = new URL(url);
  return {
    ...history,
    get receiver() {
      return receiver;
    },
    url,
    generator,
    push: async (product, event = 'created') => {
      const body = notificationBody(product, event, nowUs());
      const answer = await fetch(`${receiver.url}/notifications/alps`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(`${pair.username}:${pair.password}`)}` },
        body,
      });
      return answer.status;
    },
    restart: async (between = async () => undefined) => {
      await receiver.close();
      await between();
      receiver = await serveFolder(dataDir, { ...loopback, port: Number(port) }, plan);
    },
    close: async () => {
      await receiver.close();
      rmSync(folder, { recursive: true });
    },
  };
}

const realNowUs = () => Date.now() * 1_000;

async function serveFolder(
  dataDir: string,
  listen: typeof loopback,
  { nowUs, jobs }: Plan,
): Promise<RunningReceiver> {
  const config = serveConfig({
    dataDir,
    credentials: { source: 'variables', pairs: [pair] },
    console: { listen, password: undefined, catalogueUrl: 'https://catalogue.test' },
    index: true,
  });
  const io = testIo({ nowUs, random: Math.random });
  const receiver = await serve(config, silentLog, io);
  receiver.setBackgroundJobs(runningJobs(jobs));
  return receiver;
}

async function untilIndexed({ products, store }: RunningReceiver): Promise<void> {
  const isIndexed = async () =>
    (await products.indexedPosition().catch(() => -1)) === (await store.lastPosition());
  while (!(await isIndexed())) await new Promise((resolve) => setTimeout(resolve, 20));
}

export function notificationBody(
  product: PublishedProduct | DeletedProduct,
  event: string,
  atUs: number,
  ackId: string = randomUUID(),
): string {
  const { Id: ProductId, Name: ProductName } = product;
  const own = { SubscriptionEvent: event, ProductId, ProductName, AckId: ackId, value: product };
  return JSON.stringify(notification(0, { ...own, NotificationDate: formatDateUs(atUs) }));
}

async function fill(store: Store, generator: Generator, count: number): Promise<History> {
  const now = realNowUs();
  // Noon: yesterday at any time of the day, and the hours around it are due.
  const missingHourUs = Math.floor(now / dayUs) * dayUs - 12 * hourUs;
  const products: PublishedProduct[] = [];
  const deliveries: Promise<unknown>[] = [];
  for (let i = 0; i < count; i += 1) {
    // The last one was published a minute ago.
    const publishedUs = Math.floor(now - 60_000_000 - ((count - 1 - i) * 3 * dayUs) / count);
    if (publishedUs >= missingHourUs && publishedUs < missingHourUs + hourUs) continue;
    const product = generator.next(publishedUs / 1_000);
    const notifiedUs = publishedUs + 40_000_000 + (i % 17) * 500_000;
    products.push(product);
    const body = notificationBody(product, 'created', notifiedUs);
    deliveries.push(store.accept(pushed(body, notifiedUs + 80_000 + (i % 7) * 30_000)));
    if (deliveries.length % 200 === 0) await Promise.all(deliveries);
  }
  await Promise.all(deliveries);
  for (const [i, body] of hostileBodies.entries()) {
    await store.accept(pushed(body, now - (i + 1) * hourUs));
  }
  const alps: Parameters<typeof registerRunning>[1] = {
    name: 'alps',
    filter: "Collection/Name eq 'SENTINEL-2'",
    events: ['created', 'deleted'],
    subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
  };
  const times = { sinceUs: now - 3 * dayUs, latestUs: now - 60_000_000, nowUs: now };
  await registerRunning(store, alps, times);
  await compare(store, now, missingHourUs);
  await raiseAlerts(store, now, missingHourUs);
  await fillOperation(store, now);
  return { nowUs: now, products, missingHourUs };
}

/** Bodies that would act, if they were interpreted. */
export const hostileBodies = [
  '<script>document.title = "attacked"</script><img src=x onerror="document.title=1">',
  '{"ProductId":"\u202egpj.exe","note":"\u001b[31mred\u001b[0m \u2066hidden\u2069"}',
];

export const pushed = (body: string, receivedAtUs: number, subscription = 'alps') =>
  delivery(body, { subscription, receivedAtUs });

/** Saves the coverage of each hour until two hours ago: one hour is recovered, one late, one has missing events. */
async function compare({ completeness }: Store, now: number, missingHourUs: number): Promise<void> {
  const lastUs = Math.floor(now / hourUs) * hourUs - 2 * hourUs;
  const hours = Array.from({ length: 69 }, (_, i) => lastUs - i * hourUs);
  const counts = (at: number) => {
    if (at === missingHourUs) return { pushed: 2, late: 0, recovered: 0, missing: 4 };
    if (at === missingHourUs - 5 * hourUs) return { pushed: 3, late: 0, recovered: 3, missing: 0 };
    if (at === missingHourUs + 9 * hourUs) return { pushed: 4, late: 2, recovered: 0, missing: 0 };
    return { pushed: 6, late: 0, recovered: 0, missing: 0 };
  };
  await completeness.saveCoverage(
    hours.flatMap((at) => {
      const own = { subscription: 'alps', hourUs: at, comparedAtUs: now };
      const none = { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
      return [
        { ...own, event: 'created' as const, expected: 6, ...counts(at) },
        { ...own, event: 'deleted' as const, ...none },
      ];
    }),
  );
}

async function raiseAlerts({ alerts }: Store, now: number, missingHourUs: number): Promise<void> {
  const finding = {
    ...({ kind: 'missing', subject: 'alps' } as const),
    ...missingFinding('alps', [{ hourUs: missingHourUs, missing: 4 }]),
  };
  await alerts.settleFindings({
    checked: [finding],
    findings: [finding],
    channels: [],
    atUs: now - hourUs,
  });
}
