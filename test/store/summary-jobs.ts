/** Sample jobs, texts and keys for tests of summaries. */
import type {
  DigestScope,
  NewSummaryJob,
  Summaries,
  SummaryBudget,
  SummaryJob,
  SummaryText,
} from '../../src/domain/summaries.ts';

export const atUs = 1_795_000_000_000_001;
export const hourUs = 3_600_000_000;
export const dayUs = 24 * hourUs;

/** More than any test spends. */
export const plenty: SummaryBudget = {
  requestsPerHour: 1_000,
  requestsPerDay: 1_000,
  tokensPerDay: 1_000_000,
};

export function productJob(number: number, fields: Partial<NewSummaryJob> = {}): NewSummaryJob {
  return {
    kind: 'product',
    subject: `product-${number}`,
    productId: `product-${number}`,
    productName: `S2A_MSIL2A_${number}.SAFE`,
    subscription: 'alps',
    position: number,
    scope: null,
    dueAtUs: atUs,
    ...fields,
  };
}

const scope: DigestScope = {
  fromUs: atUs - dayUs,
  untilUs: atUs,
  subscription: 'alps',
  collection: 'SENTINEL-2',
  filter: "contains(Name,'Kärnten €') \n and 1 eq 1",
  area: 'Kärnten €',
};

export function digestJob(number: number, fields: Partial<NewSummaryJob> = {}): NewSummaryJob {
  return {
    ...productJob(number),
    kind: 'digest',
    subject: `digest-${number}`,
    productId: null,
    productName: null,
    position: null,
    scope,
    ...fields,
  };
}

export function key(number: number): Uint8Array {
  return new Uint8Array(32).fill(number);
}

export function modelText(words: string, fields: Partial<SummaryText> = {}): SummaryText {
  return {
    text: words,
    model: 'vendor/model',
    verified: true,
    doubts: [],
    createdAtUs: atUs + 9,
    ...fields,
  };
}

/** Requests these jobs and returns them as the worker sees them, in order. */
export async function enqueued(
  summaries: Summaries,
  jobs: readonly NewSummaryJob[],
  options: { waitingMax?: number; atUs?: number } = {},
): Promise<SummaryJob[]> {
  const { ids } = await summaries.enqueue({ jobs, waitingMax: 1_000, atUs, ...options });
  const found = await summaries.due({ nowUs: Number.MAX_SAFE_INTEGER, limit: 1_000, ids });
  return ids.flatMap((id) => found.filter((job) => job.id === id));
}

/** Claims a job within a sufficient budget, by default for one minute. */
export function claim(
  summaries: Summaries,
  job: Pick<SummaryJob, 'id' | 'revision'>,
  options: { nowUs?: number; tokens?: number; leaseUs?: number } & Partial<SummaryBudget> = {},
) {
  const { nowUs = atUs, tokens = 100, leaseUs = 60_000_000, ...limits } = options;
  const leaseUntilUs = nowUs + leaseUs;
  const budget = { ...plenty, ...limits };
  return summaries.claim({ job, model: 'vendor/model', tokens, budget, leaseUntilUs, nowUs });
}
