/** Says which alerts last. What they are about is said of its own part. */
import { isWatched, type Judge, listed, unused, well } from './judgement.ts';

export const judgeAlerts: Judge = (facts) => {
  const { alerts } = facts;
  if (alerts.length === 0) {
    return isWatched(facts)
      ? well('none is active')
      : unused('none is active, but no watchdog runs');
  }
  const names = alerts.map(({ kind, subject }) =>
    subject === '' ? kind : `${kind} of ${subject}`,
  );
  const level = alerts.some(({ severity }) => severity === 'critical') ? 'critical' : 'warning';
  return {
    level,
    text: `${alerts.length} last: ${listed(names)}`,
    nextStep: 'Run `earshot alerts` for what they rest on.',
  };
};
