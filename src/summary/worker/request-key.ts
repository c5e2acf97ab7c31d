/** Knows a request again: the same about the same subject is not sent twice. */
import { hash } from 'node:crypto';
import type { SummaryJob } from '../../domain/summaries.ts';
import type { ChatRequest } from '../chat/chat-request.ts';

type Subject = Pick<SummaryJob, 'kind' | 'subject'>;

/** The digest of subject, model and messages: all that an answer depends on. */
export function requestKey({ kind, subject }: Subject, request: ChatRequest): Uint8Array {
  return digest([kind, subject, request.model, request.messages]);
}

/** The key of a template that stands for itself, as no model is configured. */
export function templateKey({ kind, subject }: Subject, template: string): Uint8Array {
  return digest([kind, subject, null, template]);
}

function digest(parts: readonly unknown[]): Uint8Array {
  return hash('sha256', JSON.stringify(parts), 'buffer');
}
