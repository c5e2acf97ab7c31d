/** Checks the other receivers of a shared log, for the watchdog of the one that runs the background jobs. */
import type { DatabaseWarning, KnownNode } from '../domain/shared-log.ts';
import { sizeText } from '../domain/text.ts';
import {
  type CheckResult,
  checkOf,
  countText,
  joinResults,
  lengthText,
  quoted,
  type SharedReceivers,
  type Situation,
} from './situation.ts';

/** A receiver reports every five seconds; a restart takes a few. */
const silentUs = 60_000_000;

/** A receiver that applies entries has a lag of a few hundred under full load. */
const lagMax = 20_000;

/** A receiver without space for its own log still accepts notifications, but its queries stop. */
const freeBytesMin = 2 ** 30;

/** Returns a result for each other receiver. One that was removed is fine, and without a shared log (null) all are. */
export function checkReceivers(
  receivers: SharedReceivers | null,
  situation: Pick<Situation, 'active'>,
): CheckResult {
  const { ownId, nodes } = receivers ?? { ownId: '', nodes: [] };
  const others = nodes.filter(({ id }) => id !== ownId);
  const names = new Set(others.map(({ name }) => name));
  const gone = situation.active.filter(
    ({ kind, subject }) => kind === 'receiver' && !names.has(subject),
  );
  return joinResults([
    ...gone.map(({ kind, subject }) => checkOf(kind, subject, situation).fine),
    ...others.map((node) => checkReceiver(node, situation)),
  ]);
}

/** Checks the warnings of the database: it still accepts notifications. */
export function checkDatabase(warnings: readonly DatabaseWarning[]): CheckResult {
  const { fine, found } = checkOf('database', '');
  if (warnings.length === 0) return fine;
  return found({
    severity: 'warning',
    cause: 'The database of the shared log warns.',
    evidence: warnings.slice(0, 5).map(({ code, text }) => `${quoted(text)} (${code})`),
    nextStep: 'Fix the cause in the database: PostgreSQL may later refuse notifications.',
  });
}

function checkReceiver(
  { name, lag, ageMs, facts }: KnownNode,
  situation: Pick<Situation, 'active'>,
): CheckResult {
  const { fine, found } = checkOf('receiver', name, situation);
  const ageUs = ageMs * 1_000;
  if (ageUs > silentUs) {
    return found({
      severity: 'warning',
      cause: `The receiver ${quoted(name)} has not reported for ${lengthText(ageUs)}.`,
      evidence: ['The other receivers accept notifications.'],
      nextStep: `Start the receiver. If you have removed it, run \`earshot log remove ${name}\`.`,
    });
  }
  if (facts.refusing !== null) {
    return found({
      severity: 'warning',
      cause: `The receiver ${quoted(name)} cannot store notifications.`,
      evidence: [quoted(facts.refusing)],
      nextStep: 'Check the connection of that receiver to the database.',
    });
  }
  if (facts.fault !== null) {
    return found({
      severity: 'warning',
      cause: `The receiver ${quoted(name)} cannot apply entries of the shared log.`,
      evidence: [
        quoted(facts.fault),
        'The receiver accepts notifications, but its queries and its page are old.',
      ],
      nextStep: 'Check the log and the disk of that receiver.',
    });
  }
  if (lag > lagMax) {
    return found({
      severity: 'warning',
      cause: `The receiver ${quoted(name)} lags ${countText(lag)} entries.`,
      evidence: ['The receiver accepts notifications, but its queries and its page are old.'],
      nextStep: 'Check the log and the disk of that receiver.',
    });
  }
  if (facts.freeBytes !== null && facts.freeBytes < freeBytesMin) {
    return found({
      severity: 'warning',
      cause: `The disk of the receiver ${quoted(name)} has only ${sizeText(facts.freeBytes)} of free space.`,
      evidence: ['On a full disk, its queries and its page become old.'],
      nextStep: 'Free some space on that disk.',
    });
  }
  return fine;
}
