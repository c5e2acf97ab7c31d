/** Says what the log holds and takes up. What the quarantine holds is kept, and so no fault by itself. */
import { shortDateUs } from '../../domain/notification-date.ts';
import { sizeText } from '../../domain/size-text.ts';
import { counted } from '../sinks/counted.ts';
import { type Judge, unused, well } from './judgement.ts';

export const judgeLog: Judge = ({ log }) => {
  if (log === null) return unused('not known');
  const { firstReceivedAtUs, usedBytes, indexBytes, pruned, quarantined } = log;
  const held =
    quarantined === 0
      ? 'nothing in quarantine'
      : `${counted(quarantined, 'body', 'bodies')} in quarantine (\`earshot quarantine list\`)`;
  const index = indexBytes === 0 ? '' : `, index ${sizeText(indexBytes)}`;
  const size = `${sizeText(usedBytes)}${index}; ${held}`;
  if (firstReceivedAtUs === null) return well(`empty, ${size}`);
  const kept = pruned === null ? 'since' : 'pruned to';
  return well(`${kept} ${shortDateUs(firstReceivedAtUs)} UTC, ${size}`);
};
