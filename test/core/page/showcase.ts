/**
 * History for the pictures of the documentation: nine days of two subscriptions, with a daily rhythm, bursts, an hour of
 * late pushes, a recovered hour and a missing hour. The clock stands still, so that pictures change only with the page.
 */

import { hourUs } from '../../../src/core/terms/dates.ts';
import { missingFinding } from '../../../src/features/subscriptions/checks.ts';
import { createRandom, type Random } from '../../../src/sandbox/clock.ts';
import type { Store } from '../../../src/store/store.ts';
import { doneWith } from '../../features/summary/summary-jobs.ts';
import {
  deliverTo,
  diskFinding,
  jobsWith,
  registerRunning,
  summarize,
} from './seeded-operation.ts';
import {
  type Generator,
  type History,
  notificationBody,
  type Plan,
  type PublishedProduct,
  pushed,
} from './seeded-receiver.ts';

const minuteUs = 60_000_000;
const dayUs = 24 * hourUs;
const days = 9;
export const showcaseNowUs = Date.UTC(2026, 5, 18, 15, 41, 20) * 1_000;
const todayUs = Math.floor(showcaseNowUs / dayUs) * dayUs;
const currentHourUs = Math.floor(showcaseNowUs / hourUs) * hourUs;

/** Hours with a fault, of the subscription `land`. */
const missingHourUs = todayUs - 20 * hourUs;
const lateHourUs = todayUs - 61 * hourUs;
const recoveredHourUs = todayUs - 107 * hourUs;

const jobs = jobsWith({ archive: 'command', quicklooks: 'nats', 'team-hook': 'webhook' });

export const showcase: Plan = { nowUs: () => showcaseNowUs, jobs, fill };

interface Event {
  subscription: Subscription;
  event: 'created' | 'modified' | 'deleted';
  product: Parameters<typeof notificationBody>[0];
  atUs: number;
}

type Subscription = (typeof subscriptions)[number]['name'];

const subscriptions = [
  {
    name: 'land',
    subscriptionId: '0b6c9d52-1d0e-4c57-9a51-5f8f2f0f3f11',
    filter: "Collection/Name eq 'SENTINEL-1' or Collection/Name eq 'SENTINEL-2'",
    events: ['created', 'modified', 'deleted'],
  },
  {
    name: 'ocean',
    subscriptionId: '7a8e3c14-93d5-4e0b-8c1f-6f5a1f2f7c22',
    filter: "Collection/Name eq 'SENTINEL-3' or Collection/Name eq 'SENTINEL-5P'",
    events: ['created', 'deleted'],
  },
] as const;

/** Collections of `land`, by the start of a product's name. */
const isLand = ({ Name }: { Name: string }) => /^S[12][A-D]/.test(Name);

async function fill(store: Store, generator: Generator): Promise<History> {
  const random = createRandom(21);
  const events = draw(generator, random);
  await deliver(store, events, random);
  await quarantine(store);
  await register(store);
  const coverage = coverageOf(events);
  for (const { name } of subscriptions) {
    await store.completeness.saveCoverage(coverage.filter((one) => one.subscription === name));
  }
  await raise(store, coverage);
  await fillSinks(store);
  await fillSummaries(store);
  const products = events.flatMap(({ event, product }) =>
    event === 'created' ? [product as PublishedProduct] : [],
  );
  return { nowUs: showcaseNowUs, products, missingHourUs };
}

/** Draws the events, oldest first: most are publications; some products change or are deleted hours later. */
function draw(generator: Generator, random: Random): Event[] {
  const events: Event[] = [];
  const later: Event[] = [];
  for (let hour = currentHourUs - days * dayUs; hour <= currentHourUs; hour += hourUs) {
    const times = Array.from({ length: rateOf(hour, random) }, () => hour + random.next() * hourUs);
    for (const publishedUs of times.toSorted((a, b) => a - b)) {
      const product = generator.next(publishedUs / 1_000);
      const subscription = isLand(product) ? 'land' : 'ocean';
      events.push({ subscription, event: 'created', product, atUs: publishedUs });
      const atUs = publishedUs + random.between(0.5, 9) * hourUs;
      if (random.chance(0.03) && subscription === 'land') {
        const modified = generator.modified(product, atUs / 1_000);
        later.push({ subscription, event: 'modified', product: modified, atUs });
      } else if (random.chance(0.015)) {
        const deleted = generator.deleted(product, atUs / 1_000);
        later.push({ subscription, event: 'deleted', product: deleted, atUs });
      }
    }
  }
  return [...events, ...later]
    .filter(({ atUs }) => atUs < showcaseNowUs - minuteUs)
    .toSorted((a, b) => a.atUs - b.atUs);
}

/** Products of an hour: more by day, in some hours a burst. */
function rateOf(hour: number, random: Random): number {
  const ofDay = (hour % dayUs) / dayUs;
  const rhythm = 1 - 0.6 * Math.cos(2 * Math.PI * (ofDay - 0.1));
  const burst = random.chance(0.05) ? random.between(1.8, 2.6) : random.between(0.8, 1.2);
  return Math.round(52 * rhythm * burst);
}

const hourOf = (us: number) => us - (us % hourUs);
const isIn = (hour: number, { subscription, atUs }: Event) =>
  subscription === 'land' && hourOf(atUs) === hour;

/** True for an event that never arrived. */
const isMissing = (one: Event) => isIn(missingHourUs, one) && one.atUs % hourUs > hourUs * 0.45;
const isRecovered = (one: Event) => isIn(recoveredHourUs, one) && one.atUs % hourUs > hourUs * 0.6;

/** Draws a factor from a log-normal distribution with the median 1. */
function spread(random: Random, sigma: number): number {
  const normal = Array.from({ length: 12 }, () => random.next()).reduce((a, b) => a + b) - 6;
  return Math.exp(sigma * normal);
}

async function deliver(store: Store, events: readonly Event[], random: Random): Promise<void> {
  const deliveries = events
    .filter((one) => !isMissing(one))
    .map((one) => {
      const { subscription, event, product, atUs } = one;
      const source = isRecovered(one) ? ('reconcile' as const) : ('push' as const);
      const waitUs = isIn(lateHourUs, one) ? random.between(70, 110) * minuteUs : 0;
      // The catalogue is slower by day; a few pushes take much longer than the median.
      const load = 1 + 0.8 * Math.sin(((atUs % dayUs) / dayUs) * 2 * Math.PI - 2);
      const notifiedUs = atUs + 14_000_000 * load * spread(random, 0.55);
      const storedUs = notifiedUs + waitUs + 130_000 * spread(random, 0.45);
      const receivedAtUs = Math.floor(
        source === 'push' ? storedUs : recoveredHourUs + 2.1 * hourUs,
      );
      const body = notificationBody(product, event, Math.floor(notifiedUs), random.uuid());
      return { ...pushed(body, receivedAtUs, subscription), source };
    })
    .toSorted((a, b) => a.receivedAtUs - b.receivedAtUs);
  let accepted: Promise<unknown>[] = [];
  for (const one of deliveries) {
    accepted.push(store.accept(one));
    if (accepted.length < 200) continue;
    await Promise.all(accepted);
    accepted = [];
  }
  await Promise.all(accepted);
}

async function quarantine(store: Store): Promise<void> {
  const bodies = [
    ['{"SubscriptionEvent":"created","ProductName":"S2B_MSIL1C_20260616T101559"}', 53 * hourUs],
    ['<html><body><h1>502 Bad Gateway</h1></body></html>', 5 * hourUs],
  ] as const;
  for (const [body, agoUs] of bodies) {
    const delivery = pushed(body, showcaseNowUs - agoUs, 'land');
    const headers = ['Content-Type', body.startsWith('<') ? 'text/html' : 'application/json'];
    await store.accept({ ...delivery, headers });
  }
}

async function register(store: Store): Promise<void> {
  const times = { latestUs: showcaseNowUs - minuteUs, nowUs: showcaseNowUs };
  for (const one of subscriptions)
    await registerRunning(store, one, { sinceUs: todayUs - days * dayUs, ...times });
  await store.administration.markDeliveries(
    subscriptions.map(({ name }) => ({
      ...{ subscription: name, username: 'catalogue', lastAtUs: times.latestUs },
    })),
  );
}

/** Counts the events of each hour until two hours ago, as a comparison with the catalogue does. */
function coverageOf(events: readonly Event[]) {
  const compared = events.filter(({ atUs }) => hourOf(atUs) < currentHourUs - 2 * hourUs);
  const groups = Map.groupBy(compared, (one) => {
    return [one.subscription, one.event, hourOf(one.atUs)].join(' ');
  });
  const hours = Array.from({ length: days * 24 - 2 }, (_, i) => currentHourUs - (i + 3) * hourUs);
  return subscriptions.flatMap(({ name, events: kinds }) =>
    hours.flatMap((hour) =>
      kinds.map((event) => {
        const all = groups.get([name, event, hour].join(' ')) ?? [];
        const missing = all.filter(isMissing).length;
        const recovered = all.filter(isRecovered).length;
        const late = name === 'land' && hour === lateHourUs ? all.length : 0;
        const pushed = all.length - missing - recovered - late;
        const own = { subscription: name, event, hourUs: hour, expected: all.length };
        return { ...own, pushed, late, recovered, missing, comparedAtUs: hour + 2.1 * hourUs };
      }),
    ),
  );
}

async function raise({ alerts }: Store, hours: ReturnType<typeof coverageOf>): Promise<void> {
  const missing = {
    ...({ kind: 'missing', subject: 'land' } as const),
    ...missingFinding(
      'land',
      hours.filter((hour) => hour.missing > 0),
    ),
  };
  const settle = (findings: readonly (typeof missing | typeof diskFinding)[], agoUs: number) =>
    alerts.settleFindings({
      checked: [missing, diskFinding],
      findings,
      channels: ['url'],
      atUs: showcaseNowUs - agoUs,
    });
  await settle([diskFinding], 4 * dayUs);
  await settle([], 3 * dayUs);
  await settle([missing], 17 * hourUs);
}

/** `archive` and `quicklooks` have delivered everything; `team-hook` refused a notification and retries others. */
async function fillSinks(store: Store): Promise<void> {
  const given = { count: 12, nowUs: showcaseNowUs };
  for (const sink of ['archive', 'quicklooks']) await deliverTo(store, sink, given);
  const error = 'The webhook answered 422: unknown tile.';
  await deliverTo(store, 'team-hook', { ...given, dead: 1, retried: 2, error });
}

async function fillSummaries(store: Store): Promise<void> {
  const found = await Array.fromAsync(store.find({ limit: 80, subscription: 'land' }));
  const rows = found.filter(({ event, productName }) => {
    return event === 'created' && productName?.includes('MSIL2A');
  });
  const by = { model: 'openai/gpt-oss-120b', createdAtUs: showcaseNowUs - 20 * minuteUs };
  const [digest, product] = showcaseTexts.map((text) => doneWith(text, by));
  if (digest === undefined || product === undefined) throw new Error('There is no text.');
  await summarize(store, rows.slice(0, 4), {
    scope: { fromUs: todayUs - dayUs, untilUs: todayUs, subscription: 'land', filter: null },
    nowUs: showcaseNowUs,
    results: [digest, ...Array(4).fill(product)],
  });
}

/** Texts of the digest and of products. */
const showcaseTexts = [
  '53 products received for land, 17 June 2026: Sentinel-2 (53). The clearest scene is Sentinel-2A over northern Italy, 17 June 2026 10:20 UTC, 3 % cloud.',
  'A level-2A scene of Sentinel-2A over northern Italy, sensed 18 June 2026 10:20 UTC, and published 3 h after sensing.',
];
