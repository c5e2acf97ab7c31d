/** A basic sink. This file is also loaded without a test runner. */
import type { MessageUrls } from '../../../src/features/sinks/formats.ts';
import type { SinkDefinition } from '../../../src/features/sinks/registry.ts';

/** URLs in messages. */
export const messageUrls: MessageUrls = {
  catalogue: 'https://catalogue.example.org',
  receiver: 'https://earshot.example.org',
};

/** A sink that by default receives everything from the start of the log. */
export function definition(
  target: SinkDefinition['target'],
  fields: Partial<SinkDefinition> = {},
): SinkDefinition {
  return {
    name: 'sink',
    target,
    subscriptions: [],
    events: [],
    filter: '',
    startAt: 'start',
    concurrency: 4,
    timeoutMs: 10_000,
    attemptsMax: 5,
    ...fields,
  };
}
