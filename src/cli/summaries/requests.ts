/** Shows what would be sent, word by word, and what it would cost; sends and changes nothing. */
import { AppError } from '../../domain/app-error.ts';
import { type NewSummaryJob, type SummaryJob, summaryKinds } from '../../domain/summaries.ts';
import type { ChatRequest } from '../../summary/chat/inference-calls.ts';
import { chatRequest, estimateTokens, systemPrompt } from '../../summary/prompt.ts';
import { nextRequest, requestKey } from '../../summary/worker/do-job.ts';
import { prepare } from '../../summary/worker/prepare.ts';
import type { SummaryWorld } from '../../summary/worker/summary-context.ts';
import type { Io } from '../io.ts';
import { writeForeign } from '../output.ts';
import { subjectName } from './rows.ts';
import { grouped } from './work-report.ts';

/** Stands in for a model where none is configured. */
const placeholderModel = '<vendor>/<model_name>';

/** One request a line with `--json`, else one below the other. Rejects with `cancelled` when the user ends it. */
export async function showRequests(
  jobs: readonly (NewSummaryJob | SummaryJob)[],
  world: SummaryWorld,
  { stdout, stderr, signal }: Pick<Io, 'stdout' | 'stderr' | 'signal'>,
  { json }: { json?: true },
): Promise<void> {
  const total = { requests: 0, tokens: 0, known: 0, unknown: 0 };
  for (const job of jobs) {
    if (signal.aborted) throw new AppError('cancelled', 'Stopped. Nothing was sent.');
    const request = await requestFor(job, world);
    if (typeof request === 'string') {
      total[request] += 1;
      continue;
    }
    const { kind, productId, productName } = job;
    const tokens = estimateTokens(request, kind);
    total.requests += 1;
    total.tokens += tokens;
    const line = JSON.stringify({ kind, productId, productName, tokens, request });
    const text = json
      ? `${line}\n`
      : `# ${subjectName(job)}: about ${grouped(tokens)} tokens\n${JSON.stringify(request, null, 2)}\n`;
    await writeForeign(stdout, text);
  }
  stderr.write(`${totalsLine(total, world)}\n`);
}

/** The request, `known` where its answer is there already, `unknown` where there is nothing to tell. */
async function requestFor(
  job: NewSummaryJob | SummaryJob,
  world: SummaryWorld,
): Promise<ChatRequest | 'known' | 'unknown'> {
  const prepared = await prepare(job, world);
  if (prepared === null) return 'unknown';
  const request = chatRequest(prepared.sheet, world.model?.name ?? placeholderModel);
  if ((await world.summaries.known(requestKey(job, request))) !== null) return 'known';
  return nextRequest(job, request);
}

function totalsLine(
  total: { requests: number; tokens: number; known: number; unknown: number },
  { model, budget }: SummaryWorld,
): string {
  const { requests, tokens, known, unknown } = total;
  const { requestsPerHour, requestsPerDay, tokensPerDay } = budget;
  return [
    `${grouped(requests)} request${requests === 1 ? '' : 's'}, about ${grouped(tokens)} tokens.`,
    ...(known > 0 ? [`${known} more answered already.`] : []),
    ...(unknown > 0 ? [`${unknown} with nothing to tell.`] : []),
    `Allowed are ${grouped(requestsPerHour)} requests an hour, ${grouped(requestsPerDay)} a day, and ${grouped(tokensPerDay)} tokens a day.`,
    model === null
      ? 'No model is configured, so none would be sent: the texts would be made of the facts alone.'
      : 'Nothing was sent.',
  ].join(' ');
}

/** The fixed part of each kind of request; the facts follow in a message of their own. */
export function promptText(): string {
  return summaryKinds.map((kind) => `# ${kind}\n${systemPrompt(kind)}\n`).join('\n');
}
