/** Judges how old the last backup is, where they are made by themselves. */
import { hourUs } from '../../domain/completeness.ts';
import { lengthText, momentText } from '../plain-figures.ts';
import { quoted } from '../quoted.ts';
import { lastingAlert, type Situation, upForUs } from '../situation.ts';
import { nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';
import type { WatchWorld } from '../watch-world.ts';

/** So many may be left out: the next one is due, or is being made. */
const intervals = 2;
/** After a start, one that is due is made first. */
const firstUs = hourUs;

/** Over with the next one that is made. */
export async function judgeBackup(
  { backups, backupEveryHours }: Pick<WatchWorld, 'backups' | 'backupEveryHours'>,
  situation: Pick<Situation, 'lasting' | 'nowUs' | 'uptimes'>,
): Promise<Verdict> {
  if (backupEveryHours === null) return nothingWrong('backup', '');
  const { made, failed } = await backups.lastBackups();
  const ageUs = made === null ? Number.POSITIVE_INFINITY : situation.nowUs - made.startedAtUs;
  if (ageUs <= intervals * backupEveryHours * hourUs) return nothingWrong('backup', '');
  const isLasting = lastingAlert(situation, 'backup', '') !== undefined;
  if (!isLasting && upForUs(situation) < firstUs) return unjudged;
  const last =
    made === null
      ? 'None was ever made.'
      : `The last one was begun at ${momentText(made.startedAtUs)}: ${quoted(made.file)}`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const reason = hasFailed
    ? `The last try failed at ${momentText(failed.endedAtUs)}: ${quoted(failed.error ?? '')}`
    : null;
  return wrong({
    kind: 'backup',
    subject: '',
    severity: 'warning',
    cause:
      made === null
        ? 'There is no backup, though one is to be made by itself.'
        : `The last backup is ${lengthText(ageUs)} old, though one is to be made every ${backupEveryHours} h.`,
    evidence: reason === null ? [last] : [last, reason],
    nextStep:
      'Put right what the reason says, or run `earshot backup` to see it; it is tried again by itself.',
  });
}
