/** Says how summaries stand. One that cannot be made has its plain text, so none of it is a fault. */
import { lengthText } from '../../watch/plain-figures.ts';
import { counted, whole } from '../sinks/counted.ts';
import { type Judge, unused, well } from './judgement.ts';

export const judgeSummaries: Judge = ({ summaries, atUs, rejectedConfig = null }) => {
  if (summaries === null && rejectedConfig !== null) {
    return unused('unknown while earshot.config.ts is rejected');
  }
  if (summaries === null || (summaries.mode === 'off' && summaries.waiting === 0)) {
    return unused('off');
  }
  const { waiting, nextDueAtUs, failed, requests, tokens } = summaries;
  const since =
    nextDueAtUs === null || nextDueAtUs >= atUs
      ? ''
      : `, the first for ${lengthText(atUs - nextDueAtUs)}`;
  const counts = [
    waiting === 0 ? 'none waits' : `${whole(waiting)} wait${since}`,
    ...(failed === 0 ? [] : [`${whole(failed)} failed`]),
  ];
  const asked = `${counted(requests, 'request')} and ${counted(tokens, 'token')} in 24 h`;
  return well(`${counts.join(', ')}; ${asked}`);
};
