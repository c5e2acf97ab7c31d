/** Says in words what holds pruning back, and what to do about it. */
import { shortDateUs } from '../../domain/notification-date.ts';
import type { LogHolder } from '../../domain/pruning.ts';
import { summaryReader } from '../../domain/summaries.ts';
import { whole } from '../sinks/counted.ts';

/** Such as `reader downloads, at position 1,200 since 2026-01-03 …`. */
export function holderText({ name, position, sinceUs }: LogHolder): string {
  const since = sinceUs === null ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `${name}, at position ${whole(Math.max(position, 0))}${since}`;
}

/** What lets it move on, and what gives it up. */
export function holderHint({ kind, key }: LogHolder): string {
  switch (kind) {
    case 'cursor':
      return `${readOn(key)}; \`earshot prune --forget-reader ${key}\` gives its place up.`;
    case 'index':
      return '`earshot start` and `earshot query products` go on with it.';
    case 'waiting':
      return `\`earshot sinks list\` shows why; \`earshot sinks drop ${key} --waiting\` gives it up.`;
    case 'dead-letters':
      return `\`earshot sinks dead ${key}\` shows them; \`earshot sinks drop ${key} --all\` gives them up.`;
    case 'replay':
      return `The receiver goes on with it; \`earshot sinks drop ${key} --waiting\` ends it.`;
    case 'summary-jobs':
      return '`earshot summarize` writes them; `earshot summarize --drop all` gives them up.';
  }
}

function readOn(key: string): string {
  if (key === summaryReader) return '`earshot summarize` goes on from there';
  if (key.includes(':'))
    return 'The receiver goes on from there, if earshot.config.ts has the sink';
  return `\`earshot tail --reader ${key}\` goes on from there`;
}
