/** How many tokens a request is likely to cost, before it is sent. */
import type { SummaryKind } from '../../domain/summaries.ts';
import type { ChatRequest } from '../chat/chat-request.ts';
import { answerCharactersMax } from '../check/answer-limits.ts';

/** English has four bytes and more a token; codes, digits and JSON have fewer. */
const bytesPerToken = 3;

/** Role and separators of a message. */
const tokensPerMessage = 8;

/**
 * Tokens of the question and of its answer, on purpose a bit high: a third of the question's UTF-8 bytes,
 * 8 for each message, and the longest answer that would be kept of this kind. What a model thinks in silence is
 * not in it: the service tells of it afterwards, where it does.
 */
export function estimateTokens(request: ChatRequest, kind: SummaryKind): number {
  const question = request.messages
    .map(({ content }) => Math.ceil(Buffer.byteLength(content, 'utf8') / bytesPerToken))
    .reduce((sum, tokens) => sum + tokens + tokensPerMessage, 0);
  return question + answerCharactersMax[kind] / bytesPerToken;
}
