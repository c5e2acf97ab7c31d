/** The subjects that a sink publishes to: its own with `{event}` and `{subscription}` put in. */
import type { HandOver } from './hand-over-document.ts';

/** What comes from outside must neither add a token nor be a wildcard. */
export function subjectFor(
  template: string,
  { event, subscription }: Pick<HandOver, 'event' | 'subscription'>,
): string {
  const token = (text: string) => text.replaceAll(/[^a-z0-9-]/gi, '_') || '_';
  return template
    .replaceAll('{event}', () => token(event))
    .replaceAll('{subscription}', () => token(subscription ?? '_'));
}

/** The subject, with wildcards, that covers all that the sink may publish to: such as `earshot.*.*`. */
export function coveringSubject(template: string): string {
  // A wildcard stands for a whole token (docs.nats.io, Subjects).
  return template
    .split('.')
    .map((token) => (token.includes('{') ? '*' : token))
    .join('.');
}
