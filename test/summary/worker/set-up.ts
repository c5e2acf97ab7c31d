/**
 * A summary worker for tests: real files, the real index, the sandbox as service, and a settable
 * clock.
 */
import { expect, onTestFinished } from 'vitest';
import type { SummaryBudget, SummaryRule } from '../../../src/domain/summaries.ts';
import { type Sandbox, startSandbox } from '../../../src/sandbox/sandbox.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { catchUpIndex } from '../../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../../src/store/products/products.ts';
import { openStore } from '../../../src/store/store.ts';
import { type ChatClient, createChatClient } from '../../../src/summary/chat/chat-client.ts';
import { lazyPlaces } from '../../../src/summary/places/places.ts';
import {
  collectJobs,
  compileRules,
  createDropNotice,
  type RuleOf,
} from '../../../src/summary/worker/collect-jobs.ts';
import { workDue } from '../../../src/summary/worker/run-summaries.ts';
import {
  createServicePause,
  type SummaryContext,
} from '../../../src/summary/worker/summary-context.ts';
import { delivery } from '../../cli/filled-store.ts';
import { guid, recordOf, type Sample } from '../../cli/product-samples.ts';
import type { LogLine } from '../../cli/recording-log.ts';
import { collect } from '../../helpers/deliveries.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

export const secondUs = 1_000_000;
export const minuteUs = 60 * secondUs;
export const hourUs = 60 * minuteUs;
export const dayUs = 24 * hourUs;
/** Start of the clock: a Saturday at noon. */
export const startUs = Date.UTC(2026, 4, 2, 12) * 1000;
export const model = 'openai/gpt-oss-120b';
export const each: SummaryRule = { kind: 'each', filter: '' };
export const off: SummaryRule = { kind: 'off' };

const plenty = { requestsPerHour: 10_000, requestsPerDay: 10_000, tokensPerDay: 100_000_000 };

/** A product over the north of Italy, by number. */
export function productOf(number: number, fields: Partial<Sample> = {}): Sample {
  const tile = `T32T${String.fromCharCode(65 + (number % 20))}${String.fromCharCode(65 + (Math.floor(number / 20) % 20))}`;
  const at = new Date(Date.UTC(2026, 4, 2, 8, 0, number % 3_600));
  const compact = at.toISOString().replaceAll(/[-:]|\.\d+Z/g, '');
  return {
    id: guid(String(number)),
    name: `S2B_MSIL2A_${compact}_N0511_R022_${tile}_20260502T103000.SAFE`,
    sensed: at.toISOString(),
    published: '2026-05-02T11:00:00Z',
    area: 'POLYGON ((11 45, 12 45, 12 46, 11 46, 11 45))',
    cloud: number % 100,
    attributes: {
      platformShortName: 'SENTINEL-2',
      platformSerialIdentifier: 'B',
      productType: 'S2MSI2A',
    },
    ...fields,
  };
}

let acks = 0;
const places = lazyPlaces();

interface WorkerOptions {
  dataDir?: string;
  clock?: { us: number };
  sandbox?: Sandbox;
  /** Null for no configured model. */
  client?: ChatClient | null;
  budget?: Partial<SummaryBudget>;
}

/**
 * A program's view of a data directory. Another worker on the same folder acts as another program.
 */
export async function openWorker(options: WorkerOptions = {}) {
  const { dataDir = temporaryDirectory(), clock = { us: startUs }, budget = {} } = options;
  const nowUs = () => clock.us;
  const sandbox = options.sandbox ?? (await openSandbox());
  const store = await openStore({ dataDir, nowUs });
  const products = openProducts(dataDir);
  const close = async () => {
    await products.close();
    await store.close();
  };
  let isOpen = true;
  onTestFinished(async () => {
    if (isOpen) await close();
  });
  const log: LogLine[] = [];
  const to = (level: string) => (fields: object, message: string) => {
    log.push({ level, fields: { ...fields }, message });
  };
  const client = options.client === undefined ? clientOf(sandbox) : options.client;
  const context: SummaryContext = {
    notifications: store,
    products,
    summaries: store.summaries,
    places,
    model: client === null ? null : { name: model, client },
    budget: { ...plenty, ...budget },
    acquireLock: createAcquireLock(dataDir),
    nowUs,
    random: () => 0.5,
    log: { debug: to('debug'), info: to('info'), warn: to('warn'), error: to('error') },
  };
  const pause = createServicePause(context);
  const noteDropped = createDropNotice(context);
  const stopper = new AbortController();
  const asking = { context, pause, signal: stopper.signal };
  return {
    dataDir,
    clock,
    sandbox,
    store,
    summaries: store.summaries,
    context,
    pause,
    log,
    asking,
    stop: () => stopper.abort(),
    /** Another program on the same directory and service, at the same time. */
    another: (more: WorkerOptions = {}) => openWorker({ dataDir, clock, sandbox, budget, ...more }),
    /** Claims the first job as a program that then dies. */
    claimAndDie: async () => {
      const nowUs = clock.us;
      const [job] = await store.summaries.due({ nowUs, limit: 1 });
      if (job === undefined) throw new Error('no job');
      const leaseUntilUs = nowUs + 150 * secondUs;
      const request = { model: 'a/b', tokens: 1, budget: context.budget, leaseUntilUs, nowUs };
      const claim = await store.summaries.claim({ job, ...request });
      expect(claim).toMatchObject({ outcome: 'claimed' });
      return leaseUntilUs;
    },
    /** Closes everything, as the end of the program does. */
    close: () => {
      isOpen = false;
      return close();
    },
    /** Stores notifications of products, by default received an hour ago by the clock. */
    receive: async (
      samples: readonly Sample[],
      about: {
        subscription?: string | null;
        event?: 'created' | 'modified' | 'deleted';
        receivedAtUs?: number;
      } = {},
    ) => {
      const { subscription = 'alps', event = 'created', receivedAtUs = clock.us - hourUs } = about;
      for (const sample of samples) {
        acks += 1;
        const fields = {
          SubscriptionEvent: event,
          ProductId: sample.id,
          ProductName: sample.name,
          AckId: `ack-${acks}`,
          value: recordOf(sample),
        };
        await store.accept(delivery(fields, { subscription, receivedAtUs }));
      }
    },
    index: () => catchUpIndex({ dataDir }),
    /** Indexes new notifications, and reads the log from the cursor to its end. */
    collect: async (rules: RuleOf = eachProduct) => {
      await catchUpIndex({ dataDir });
      while (await collectJobs(context, rules, noteDropped));
    },
    work: (how: Parameters<typeof workDue>[1] = {}) => workDue(asking, how),
    rows: () => collect(store.summaries.find({})),
    /** Counts of completion requests by outcome. */
    outcomes: () => sandbox.inference.totals().outcomes,
  };
}

export type Worker = Awaited<ReturnType<typeof openWorker>>;

export async function openSandbox(): Promise<Sandbox> {
  const sandbox = await startSandbox({ count: 0, now: Date.now });
  onTestFinished(() => sandbox.close());
  return sandbox;
}

export function clientOf({ inferenceUrl }: Pick<Sandbox, 'inferenceUrl'>, timeoutMs = 10_000) {
  const apiKey = 'sandbox-key';
  return createChatClient({ baseUrl: inferenceUrl, apiKey, fetch, timeoutMs });
}

/** Rules by subscription name; the others get no summary. */
export function rules(named: Record<string, SummaryRule>, otherwise: SummaryRule = off): RuleOf {
  return compileRules(new Map(Object.entries(named)), otherwise);
}

/** A text for each product. */
export const eachProduct = rules({}, each);

/** A digest for each hour. */
export const hourly = { kind: 'digest', window: 'hour', per: 'all', areas: [] } as const;

/** The products with the numbers from `from` up to, but excluding, `to`. */
export function numbered(from: number, to: number): Sample[] {
  return Array.from({ length: to - from }, (_, i) => productOf(from + i));
}

/** Opens a worker with its cursor at the end of the log: later notifications are new. */
export async function openFollowing(options: WorkerOptions = {}) {
  const worker = await openWorker(options);
  await worker.store.moveCursor('summaries', 0, startUs);
  return worker;
}

/** Opens a worker with `count` products to summarise. */
export async function withJobs(count: number, options: WorkerOptions = {}) {
  const worker = await openFollowing(options);
  await worker.receive(numbered(1, count + 1));
  await worker.collect();
  return worker;
}
