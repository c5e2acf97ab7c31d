/** What an attack has left behind: in the store, in the log, and of the program itself. */
import { openStoreReader } from '../../src/store/store.ts';
import type { Target } from './target.ts';

export interface Evidence {
  /** Valid pushes that were answered with 200, and how many of them are in the log once. */
  readonly answered: number;
  readonly stored: number;
  readonly quarantined: number;
  /** Lines that the program has written to its log. */
  readonly logLines: number;
  readonly loginLines: number;
  readonly harms: readonly string[];
}

/** Lines about failed logins in a minute, with some room for the minute that is cut in two. */
const loginLinesPerMinuteMax = 31;

/**
 * Stops the program, and looks at what it kept. `answered` are AckIds that begin with `valid`; `logFrom` is
 * how long the log was when the attack began.
 */
export async function takeEvidence(
  target: Target,
  answered: readonly string[],
  { seconds, logFrom = 0 }: { seconds: number; logFrom?: number },
): Promise<Evidence> {
  const harms: string[] = [];
  const kept = await readStore(target.dataFolder);
  const missing = answered.filter((ackId) => kept.valid.get(ackId) !== 1);
  if (missing.length > 0) {
    harms.push(
      `${missing.length} pushes were answered, but are not in the log once: ${missing[0]}`,
    );
  }
  harms.push(...kept.strangers.map((found) => `a stranger's ${found}`));
  if (!target.isRunning()) harms.push('the program has ended');
  const exitCode = await target.stop();
  if (exitCode !== 0) harms.push(`the program ended with ${exitCode}`);
  const lines = target.log().slice(logFrom).split('\n').slice(0, -1);
  const bad = lines.filter((line) => !/^\{"level":"(debug|info|warn)"/.test(line));
  harms.push(...bad.slice(0, 20).map((line) => `in its log: ${line.slice(0, 500)}`));
  const loginLines = lines.filter((line) =>
    /wrong or no credentials|failed logins/.test(line),
  ).length;
  if (loginLines > loginLinesPerMinuteMax * (Math.ceil(seconds / 60) + 2)) {
    harms.push(`${loginLines} lines about failed logins in ${Math.round(seconds)} s`);
  }
  const { quarantined } = kept;
  const stored = answered.length - missing.length;
  return {
    answered: answered.length,
    stored,
    quarantined,
    logLines: lines.length,
    loginLines,
    harms,
  };
}

/** How often each valid AckId is in the log, and what is there of strangers. */
async function readStore(dataFolder: string) {
  const reader = openStoreReader(dataFolder);
  const valid = new Map<string, number>();
  const strangers: string[] = [];
  let quarantined = 0;
  try {
    for await (const { ackId } of reader.find({})) {
      if (ackId?.startsWith('valid')) valid.set(ackId, (valid.get(ackId) ?? 0) + 1);
      if (ackId?.startsWith('stranger')) strangers.push(`notification ${ackId}`);
    }
    for await (const { id } of reader.quarantined({ released: true })) {
      quarantined += 1;
      const { body } = await reader.quarantineEntry(id);
      if (Buffer.from(body).includes('"stranger-')) strangers.push(`body in quarantine ${id}`);
    }
  } finally {
    await reader.close();
  }
  return { valid, strangers, quarantined };
}
