/** The request that a job sends next. */
import type { NewSummaryJob, SummaryJob } from '../../domain/summaries.ts';
import type { ChatRequest } from '../chat/chat-request.ts';
import { repeatRequest } from '../prompt/chat-prompt.ts';

/** `first`, or, once an answer to it was doubted, the one that says what about it was wrong. */
export function nextRequest(job: NewSummaryJob | SummaryJob, first: ChatRequest): ChatRequest {
  const doubted = 'doubted' in job ? job.doubted : null;
  return doubted === null ? first : repeatRequest(first, doubted);
}
