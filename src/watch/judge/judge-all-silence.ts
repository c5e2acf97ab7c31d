/** Judges the silence of all subscriptions: when most of them fall silent, that is told once. */
import type { Registration } from '../../domain/administration.ts';
import { lastingAlert, runs, type Situation } from '../situation.ts';
import { joined, nothingWrong, type Verdict, wrong } from '../verdict.ts';
import { judgeSilence } from './judge-silence.ts';

/** Of fewer, each speaks for itself. */
const runningMin = 3;
/** More than this share of those that run. */
const silentShare = 0.5;
/** Their alert has no name. */
const all = '';

/** While most are silent, the alerts of single ones that last go on, and none is added to them. */
export function judgeAllSilence(
  registrations: readonly Registration[],
  situation: Situation,
): Verdict {
  const running = registrations.filter(runs).length;
  const { judged, findings } = joined(registrations.map((one) => judgeSilence(one, situation)));
  if (running < runningMin || findings.length <= running * silentShare) {
    return joined([{ judged, findings }, nothingWrong('silence', all)]);
  }
  const silent = findings.map(({ subject }) => subject);
  const told = findings.filter(({ subject }) => lastingAlert(situation, 'silence', subject));
  const common = wrong({
    kind: 'silence',
    subject: all,
    severity: 'critical',
    cause: `Hardly anything arrives: ${silent.length} of ${running} subscriptions have fallen silent.`,
    evidence: [
      `Silent, for longer than is likely: ${silent.join(', ')}.`,
      ...findings.map(({ cause }) => cause),
    ],
    nextStep:
      'Run `earshot doctor` to see whether the catalogue can reach this endpoint, and `earshot subscriptions list` to see whether they still run.',
  });
  return joined([{ judged, findings: told }, common]);
}
