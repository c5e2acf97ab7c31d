/** A prune in words: what will go, what holds it back, and what came of it. */
import { shortDateUs } from '../../domain/notification-date.ts';
import type { LogSize, Prunable } from '../../domain/pruning.ts';
import { sizeText } from '../../domain/size-text.ts';
import { counted } from '../sinks/counted.ts';
import { holderHint, holderText } from './holder-hint.ts';
import type { Removed } from './prune-json.ts';

/** `isEstimated` where it goes by size, which is known exactly only when it is reached. */
export function previewText(found: Prunable, size: LogSize, isEstimated: boolean): string {
  const { notifications, fromUs, untilUs, bytes, quarantined, heldBy } = found;
  const lines: string[] = [];
  if (fromUs === null || untilUs === null) lines.push('No notification is to go.');
  else {
    const what = `${isEstimated ? 'about ' : ''}${counted(notifications, 'notification')}`;
    lines.push(
      `To go: ${what}, received from ${shortDateUs(fromUs)} until ${shortDateUs(untilUs)} (UTC), which take up about ${sizeText(bytes)} of ${sizeText(size.usedBytes)}.`,
    );
  }
  if (quarantined > 0)
    lines.push(`Also ${counted(quarantined, 'entry', 'entries')} of the quarantine.`);
  if (heldBy.length > 0) lines.push('More would go, but it is held back by:');
  for (const holder of heldBy) {
    lines.push(`  ${holderText(holder)}`, `    ${holderHint(holder)}`);
  }
  return `${lines.join('\n')}\n`;
}

export function questionText({ notifications, quarantined }: Prunable): string {
  const parts = [
    ...(notifications > 0 ? [counted(notifications, 'notification')] : []),
    ...(quarantined > 0 ? [`${counted(quarantined, 'entry', 'entries')} of the quarantine`] : []),
  ];
  return `Remove ${parts.join(' and ')} for good?`;
}

export function prunedText({ pruned, givenBackBytes }: Removed, size: LogSize): string {
  const summaries = pruned['summary-jobs'] + pruned['summary-texts'];
  const parts = [
    counted(pruned.notifications, 'notification'),
    ...(pruned.quarantine > 0
      ? [`${counted(pruned.quarantine, 'entry', 'entries')} of the quarantine`]
      : []),
    ...(summaries > 0 ? [`${counted(summaries, 'row')} of summaries`] : []),
  ];
  const file = sizeText(size.usedBytes + size.freeBytes);
  return `Removed: ${parts.join(', ')}. The log's file has ${file} now, ${sizeText(givenBackBytes)} less.\n`;
}
