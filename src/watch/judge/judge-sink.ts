/** Judges one sink: whether it takes what is new, and what it refused. */
import type { SinkCounts } from '../../domain/sinks.ts';
import { countText, lengthText, momentText } from '../plain-figures.ts';
import { quoted } from '../quoted.ts';
import { lastingAlert, type Situation } from '../situation.ts';
import { nothingWrong, type Verdict, wrong } from '../verdict.ts';

type Lasting = Pick<Situation, 'lasting' | 'nowUs'>;

/** Of the log, what a sink has not looked at. */
export interface UnreadLog {
  /** When the first of it came. */
  receivedAtUs: number;
  /** For how long its place in the log has been seen not to move. */
  standsForUs: number;
}

export interface SinkView extends SinkCounts {
  /** Whether the configuration has it; null where that is not known. */
  isSetUp: boolean | null;
  unread: UnreadLog | null;
}

const minuteUs = 60_000_000;
/** What is new waits for so long; it is over when the oldest waits for less than the second. */
const waitingUs = 15 * minuteUs;
const waitingOverUs = 5 * minuteUs;
const waitingCriticalUs = 6 * 60 * minuteUs;

/** What a replay has queued does not count: it waits behind what is new, and may take its time. */
export function judgeBehind(view: SinkView, situation: Lasting): Verdict {
  const { sink, isSetUp, oldestQueuedAtUs, oldestLiveQueuedAtUs } = view;
  if (isSetUp === false) {
    return oldestQueuedAtUs === null ? nothingWrong('sink', sink) : leftBehind(view);
  }
  const isLasting = lastingAlert(situation, 'sink', sink) !== undefined;
  const limitUs = isLasting ? waitingOverUs : waitingUs;
  const waitsUs = oldestLiveQueuedAtUs === null ? 0 : situation.nowUs - oldestLiveQueuedAtUs;
  if (waitsUs > limitUs) return behind(view, situation.nowUs, waitsUs);
  return unreadIsStuck(view, situation.nowUs, limitUs) ?? nothingWrong('sink', sink);
}

function behind({ sink, waiting, error }: SinkView, nowUs: number, waitsUs: number): Verdict {
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: severityOf(waitsUs),
    cause: `The sink ${sink} is behind: a notification has waited for ${lengthText(waitsUs)} to be taken.`,
    evidence: [
      `It was queued at ${momentText(nowUs - waitsUs)}; ${countText(waiting)} wait.`,
      ...lastFailure(error),
    ],
    nextStep: `See to what takes from it: it goes on by itself when that works again. \`earshot sinks list\` shows how it stands; \`earshot sinks drop ${sink} --waiting\` gives up what waits.`,
  });
}

/** A sink that catches up moves on in the log, however far behind it is. */
function unreadIsStuck({ sink, unread }: SinkView, nowUs: number, limitUs: number): Verdict | null {
  if (unread === null || unread.standsForUs <= limitUs) return null;
  const waitsUs = nowUs - unread.receivedAtUs;
  if (waitsUs <= limitUs) return null;
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: severityOf(waitsUs),
    cause: `Nothing is handed over to the sink ${sink}: what came ${lengthText(waitsUs)} ago has not been looked at for it.`,
    evidence: [
      `The first of it came at ${momentText(unread.receivedAtUs)}; the sink's place in the log has not moved for ${lengthText(unread.standsForUs)}.`,
    ],
    nextStep:
      'Find the reason in the log of the receiver, then restart it. `earshot sinks list` shows how far each sink is.',
  });
}

function leftBehind({ sink, waiting }: SinkView): Verdict {
  return wrong({
    kind: 'sink',
    subject: sink,
    severity: 'warning',
    cause: `The sink ${sink} is no longer set up, and ${counted(waiting)} still to be handed over to it.`,
    evidence: ['earshot.config.ts had it, and has it no more; another name is another sink.'],
    nextStep: `Put it back into earshot.config.ts, or give up what waits with \`earshot sinks drop ${sink} --waiting\`.`,
  });
}

/** Over when there are none. More of them are no other alert: the number is kept up to date. */
export function judgeRefused({ sink, isSetUp, waiting, dead, error }: SinkView): Verdict {
  if (dead === 0) return nothingWrong('sink-refused', sink);
  const letters = dead === 1 ? '1 notification' : `${countText(dead)} notifications`;
  const about = isSetUp === false ? `${sink}, which is no longer set up,` : sink;
  return wrong({
    kind: 'sink-refused',
    subject: sink,
    severity: 'warning',
    cause: `The sink ${about} has refused ${letters} for good.`,
    evidence: [
      `Dead letters: ${countText(dead)}; ${countText(waiting)} wait.`,
      ...lastFailure(error),
    ],
    nextStep:
      isSetUp === false
        ? `Put it back into earshot.config.ts, or forget them with \`earshot sinks drop ${sink} --all\`.`
        : `Run \`earshot sinks dead ${sink}\` to see why, then \`earshot sinks retry ${sink} --all\` or \`earshot sinks drop ${sink} --all\`.`,
  });
}

const severityOf = (waitsUs: number) => (waitsUs > waitingCriticalUs ? 'critical' : 'warning');

const counted = (waiting: number) =>
  waiting === 1 ? '1 notification is' : `${countText(waiting)} notifications are`;

const lastFailure = (error: string | null) =>
  error === null ? [] : [`The last failure: ${quoted(error)}`];
