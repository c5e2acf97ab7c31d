/** What the model is told, for people who want to know. */
import { summaryKinds } from '../../domain/summaries.ts';
import { systemPrompt } from '../../summary/prompt/chat-prompt.ts';

/** The fixed part of each kind of request; the facts follow in a message of their own. */
export function promptText(): string {
  return summaryKinds.map((kind) => `# ${kind}\n${systemPrompt(kind)}\n`).join('\n');
}
