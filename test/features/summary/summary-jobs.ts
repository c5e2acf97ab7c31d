/** Sample jobs and results for tests of summaries. */
import type {
  DigestScope,
  NewSummaryJob,
  SummaryOutcome,
} from '../../../src/features/summary/terms.ts';

export const atUs = 1_795_000_000_000_001;
export const hourUs = 3_600_000_000;
export const dayUs = 24 * hourUs;

export function productJob(number: number, fields: Partial<NewSummaryJob> = {}): NewSummaryJob {
  const productId = `product-${number}`;
  return {
    ...{ kind: 'product', subject: productId, productId, scope: null },
    ...{ productName: `S2A_MSIL2A_${number}.SAFE`, subscription: 'alps' },
    ...{ position: number, dueAtUs: atUs },
    ...fields,
  };
}

const scope: DigestScope = {
  ...{ fromUs: atUs - dayUs, untilUs: atUs, subscription: 'alps' },
  filter: "contains(Name,'Kärnten €') \n and 1 eq 1",
};

export function digestJob(number: number, fields: Partial<NewSummaryJob> = {}): NewSummaryJob {
  return {
    ...productJob(number, { kind: 'digest', subject: `digest-${number}`, scope }),
    ...{ productId: null, productName: null },
    ...fields,
  };
}

type Done = Extract<SummaryOutcome, { outcome: 'done' }>;

/** A text of a model, or of the template if `model` is null. */
export function doneWith(
  text: string,
  { model = 'a/b', createdAtUs = atUs }: { model?: string | null; createdAtUs?: number } = {},
  fields: Partial<Done> = {},
): Done {
  const facts = { mission: 'Sentinel-2A' };
  const written = { text, facts, model, createdAtUs };
  return { outcome: 'done', text: written, request: null, reason: null, ...fields };
}
