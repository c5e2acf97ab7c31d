/** Judges whether what reads the log keeps up with it: product index and summaries. Sinks are judged by themselves. */
import type { ReaderStatus, StatusFacts } from '../../domain/status.ts';
import { lengthText } from '../../watch/plain-figures.ts';
import { counted, whole } from '../sinks/counted.ts';
import { isWatched, type Judge, listed, unused, warning, well } from './judgement.ts';

/** As long as the watchdog bears with a sink. */
const behindUs = 900_000_000;

export const judgeReaders: Judge = (facts) => {
  const readers = facts.readers.filter((one) => isShown(one, facts));
  if (readers.length === 0) return unused('none');
  const stuck = readers.find((one) => isStuck(one, facts));
  if (stuck !== undefined && isWatched(facts)) return behind(stuck, facts.atUs);
  const late = readers.filter((one) => one.behind > 0);
  const current = readers.filter((one) => one.behind === 0);
  const names = (some: readonly ReaderStatus[]) => listed(some.map(({ name }) => name));
  return well(
    [
      ...(current.length === 0 ? [] : [`${names(current)} up to date`]),
      ...late.map((one) => `${one.name} ${whole(one.behind)} behind`).slice(0, 3),
    ].join('; '),
  );
};

const isShown = (reader: ReaderStatus, { summaries }: StatusFacts) =>
  reader.of !== 'sink' && !(reader.of === 'summaries' && summaries?.mode === 'off');

/** How far a command of the user's has got is the user's matter. */
const isStuck = ({ of, unreadSinceUs }: ReaderStatus, { atUs }: StatusFacts) =>
  of !== 'tail' && unreadSinceUs !== null && atUs - unreadSinceUs > behindUs;

const behind = ({ name, behind: count, unreadSinceUs }: ReaderStatus, atUs: number) =>
  warning(
    `The ${name} of the log ${name === 'summaries' ? 'are' : 'is'} ${counted(count, 'notification')} behind; the first came ${lengthText(atUs - (unreadSinceUs ?? atUs))} ago.`,
    'It catches up by itself. When the number does not fall, look for the reason in the log of the receiver.',
  );
