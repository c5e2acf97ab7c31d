/** Judges how old the last backup is, by the watchdog's own judge. */
import { sizeText } from '../../domain/size-text.ts';
import { judgeBackup } from '../../watch/judge/judge-backup.ts';
import { lengthText } from '../../watch/plain-figures.ts';
import { type Judge, unused, well, worstOf } from './judgement.ts';

export const judgeBackups: Judge = async ({ backups, receiver, alerts, atUs }) => {
  if (backups === null) return unused('not known');
  const { made, failed, everyHours } = backups;
  const startedAtUs = receiver?.startedAtUs ?? null;
  const { findings } = await judgeBackup(
    { backups: { lastBackups: async () => backups }, backupEveryHours: everyHours },
    {
      ...{ lasting: alerts, nowUs: atUs },
      uptimes: startedAtUs === null ? [] : [{ fromUs: startedAtUs, toUs: atUs }],
    },
  );
  const every = everyHours === null ? '' : `, one every ${everyHours} h`;
  const hasFailed = failed !== null && failed.endedAtUs > (made?.endedAtUs ?? 0);
  const failure = hasFailed ? '; the last try failed' : '';
  if (made === null) {
    const none = unused(everyHours === null ? 'none was ever made' : `none yet${every}${failure}`);
    return worstOf(findings) ?? none;
  }
  const size = made.bytes === null ? '' : `, ${sizeText(made.bytes)}`;
  const age = lengthText(atUs - made.startedAtUs);
  return worstOf(findings) ?? well(`${age} old${size}${every}${failure}`);
};
