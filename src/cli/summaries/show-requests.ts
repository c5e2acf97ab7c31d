/** Shows what would be sent, word by word, and what it would cost; sends and changes nothing. */
import { AppError } from '../../domain/app-error.ts';
import type { NewSummaryJob, SummaryJob } from '../../domain/summaries.ts';
import type { ChatRequest } from '../../summary/chat/chat-request.ts';
import { chatRequest } from '../../summary/prompt/chat-prompt.ts';
import { estimateTokens } from '../../summary/prompt/estimate-tokens.ts';
import { nextRequest } from '../../summary/worker/next-request.ts';
import { prepare } from '../../summary/worker/prepared.ts';
import { requestKey } from '../../summary/worker/request-key.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { Io } from '../io.ts';
import { writeForeign } from '../write-out.ts';
import { grouped } from './budget-limits.ts';
import { subjectName } from './subject-name.ts';

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
