/** Reads a request for a completion as far as the specification shows it (Chat completion request). */
import { createHash } from 'node:crypto';
import { z } from 'zod';

const messageSchema = z.object({ role: z.string().min(1), content: z.string() });

const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(messageSchema).min(1),
});

export interface CompletionRequest {
  readonly model: string;
  /** All user messages, a blank line between them. */
  readonly userText: string;
  /** Length of all messages together, in characters. */
  readonly characters: number;
  /** SHA-256 of model and messages, hexadecimal. */
  readonly digest: string;
  /** Names of fields that the specification does not show. */
  readonly otherFields: readonly string[];
}

/** Reads a body; a text says in one sentence what is wrong with it. */
export function readCompletionRequest(body: string): CompletionRequest | string {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return 'The request body is not JSON.';
  }
  const result = requestSchema.safeParse(value);
  if (!result.success) {
    const { path, message } = result.error.issues[0] ?? { path: [], message: 'not valid' };
    return `The request has a fault at ${path.join('.') || 'its top'}: ${message}.`;
  }
  const { model, messages, ...others } = result.data;
  const digest = createHash('sha256')
    .update(JSON.stringify([model, messages]))
    .digest('hex');
  const userTexts = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  return {
    model,
    userText: userTexts.join('\n\n'),
    characters: messages.reduce((sum, { content }) => sum + content.length, 0),
    digest,
    otherFields: Object.keys(others),
  };
}
