/** Plays one case on a connection, and says what is wrong with what comes back. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, NoAnswer, takeAnswer } from './answers.ts';
import type { Case } from './case.ts';
import type { ValidPush } from './cases/valid.ts';
import type { Wire } from './wire.ts';

export interface Played {
  readonly answers: readonly Answer[];
  /** What must not be; null when all is as it should be. */
  readonly harm: string | null;
  /** Whether the connection may be used again. */
  readonly isOpen: boolean;
}

/** Longer than the server waits for anything that these cases leave it waiting for. */
const patienceMs = 15_000;
const betweenPiecesMs = 2;

/** `judge` says what is wrong with one answer, or null. */
export async function playCase(
  wire: Wire,
  played: Case,
  judge: (answer: Answer) => string | null,
): Promise<Played> {
  await sendPieces(wire, played.pieces);
  const { connection, answersMax } = played;
  if (connection === 'ends' || connection === 'foreign') wire.socket.end();
  const answers: Answer[] = [];
  const done = (harm: string | null) => ({ answers, harm, isOpen: isReusable(wire, answers) });
  const untilClosed = connection !== 'stays';
  const giveUpMs = performance.now() + patienceMs;
  if (connection === 'foreign') return await foreignEnd(wire, giveUpMs, done);
  while (untilClosed || answers.length < answersMax) {
    const answer = await nextAnswer(wire, { isHead: played.isHead === true, giveUpMs });
    if (answer === 'silence') return done('neither answered nor closed');
    if (answer === 'end') break;
    if (answer instanceof NoAnswer) return done(`an answer that is none: ${answer.message}`);
    if (answer.status === 100) continue;
    answers.push(answer);
    if (answers.length > answersMax) return done(`${answers.length} answers`);
    const harm = played.statuses.includes(answer.status)
      ? judge(answer)
      : `status ${answer.status}, not ${played.statuses.join(', ')}`;
    if (harm !== null) return done(harm);
  }
  if (connection === 'stays' && answers.length < answersMax && !closesConnection(answers.at(-1))) {
    return done(`closed after ${answers.length} of ${answersMax} answers`);
  }
  return done(null);
}

/** Sends a valid push, which must be stored, and answered by exactly that. */
export async function playPush(
  wire: Wire,
  push: ValidPush,
  judge: (answer: Answer) => string | null,
): Promise<Played> {
  const { name, pieces } = push;
  const asCase: Case = {
    ...{ name, pieces, sender: 'holder', answersMax: 1, statuses: [200], connection: 'stays' },
  };
  if (wire.received.length > 0) {
    const harm = `bytes that nobody asked for: ${wire.received.toString('latin1').slice(0, 200)}`;
    return { answers: [], harm, isOpen: false };
  }
  const played = await playCase(wire, asCase, judge);
  const [answer] = played.answers;
  if (played.harm !== null || answer?.body === '{"status":"stored"}') return played;
  return { ...played, harm: `a valid push was answered with ${answer?.body ?? 'nothing'}` };
}

async function sendPieces(wire: Wire, pieces: readonly Buffer[]): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(betweenPiecesMs);
    wire.send(piece);
  }
}

async function nextAnswer(
  wire: Wire,
  { isHead, giveUpMs }: { isHead: boolean; giveUpMs: number },
): Promise<Answer | NoAnswer | 'silence' | 'end'> {
  for (;;) {
    try {
      const taken = takeAnswer(wire.received, { isHead });
      if (taken !== null) {
        wire.received = wire.received.subarray(taken.end);
        return taken.answer;
      }
    } catch (error) {
      if (error instanceof NoAnswer) return error;
      throw error;
    }
    if (wire.hasEnded) return 'end';
    const leftMs = giveUpMs - performance.now();
    if (leftMs <= 0) return 'silence';
    await wire.change(leftMs);
  }
}

/** A port that speaks TLS says nothing but an alert (RFC 8446, 6: record type 21) to who does not. */
async function foreignEnd(
  wire: Wire,
  giveUpMs: number,
  done: (harm: string | null) => Played,
): Promise<Played> {
  while (!wire.hasEnded && performance.now() < giveUpMs) await wire.change(patienceMs);
  if (!wire.hasEnded) return done('not closed');
  const isAlert = wire.received[0] === 21 && wire.received.length <= 7;
  return done(wire.received.length === 0 || isAlert ? null : 'more than an alert without TLS');
}

function isReusable(wire: Wire, answers: readonly Answer[]): boolean {
  return !wire.hasEnded && wire.socket.writable && !closesConnection(answers.at(-1));
}

function closesConnection(answer: Answer | undefined): boolean {
  return answer?.headers.some(([name, text]) => name === 'connection' && text === 'close') ?? false;
}
