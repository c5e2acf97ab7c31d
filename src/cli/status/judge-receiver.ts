/** Judges whether notifications are taken. */
import { agoText, lengthText } from '../../watch/plain-figures.ts';
import { critical, type Judge, well } from './judgement.ts';

export const judgeReceiver: Judge = ({ receiver, log, atUs }) => {
  if (receiver === null) {
    return critical(
      'No receiver runs: nothing is taken, and nobody watches.',
      'Start it with `earshot start`, or check EARSHOT_LISTEN if one runs.',
    );
  }
  const { refusing, startedAtUs, pid } = receiver;
  if (refusing !== null) {
    return critical(`Notifications cannot be taken: ${refusing}`, 'Run `earshot doctor`.');
  }
  const up = startedAtUs === null ? '' : `, up for ${lengthText(atUs - startedAtUs)}`;
  const lastUs = log?.lastReceivedAtUs ?? null;
  const process = pid === null ? '' : ` (process ${pid})`;
  const last = lastUs === null ? 'nothing has come yet' : `the last came ${agoText(atUs - lastUs)}`;
  return well(`takes notifications${up}${process}; ${last}`);
};
