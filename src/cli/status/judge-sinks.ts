/** Checks whether sinks acknowledge deliveries, with the checks of the watchdog. */
import type { AlertFinding } from '../../domain/alerts.ts';
import type { SinkStatus, StatusFacts } from '../../domain/status.ts';
import { judgeBehind, judgeRefused, type SinkView } from '../../watch/judge/judge-sink.ts';
import { judgeRejected, stopped } from '../../watch/judge/judge-sinks.ts';
import { joined } from '../../watch/verdict.ts';
import { whole } from '../sinks/counted.ts';
import { type Judge, listed, unused, well, worstOf } from './judgement.ts';

export const judgeSinkStates: Judge = (facts) => {
  const { sinks, rejectedConfig = null } = facts;
  if (sinks.length === 0 && rejectedConfig === null) return unused('none set up');
  const found = worstOf([
    ...sinks.flatMap((sink) => findingsOf(sink, facts)),
    // The status has no other place for the reason.
    ...judgeRejected(rejectedConfig).findings.map((finding) => ({
      ...finding,
      cause: `${finding.cause.replace(/\.$/, '')}: ${rejectedConfig}`,
    })),
  ]);
  const waiting = sinks.reduce((sum, one) => sum + one.waiting, 0);
  const names = listed(sinks.map(({ name }) => name));
  return found ?? well(`${names}: ${waiting === 0 ? 'nothing waits' : `${whole(waiting)} wait`}`);
};

function findingsOf(sink: SinkStatus, { alerts, atUs }: StatusFacts): readonly AlertFinding[] {
  const situation = { lasting: alerts, nowUs: atUs };
  const view = viewOf(sink);
  const behind =
    sink.fault === null ? judgeBehind(view, situation) : stopped(sink.name, sink.fault, situation);
  return joined([behind, judgeRefused(view)]).findings;
}

function viewOf(sink: SinkStatus): SinkView {
  const { name, isSetUp, waiting, dead, oldestWaitingAtUs, oldestLiveWaitingAtUs, lastError } =
    sink;
  return {
    ...{ sink: name, isSetUp, waiting, dead, error: lastError },
    ...{ oldestQueuedAtUs: oldestWaitingAtUs, oldestLiveQueuedAtUs: oldestLiveWaitingAtUs },
    // Whether it moves takes more than one look: that is for the watchdog alone.
    unread: null,
  };
}
