/**
 * A receiver, a file of credentials and a catalogue that delivers continuously, for tests of
 * rotations. Deliveries take time, and the receiver reloads a changed file after a delay.
 */

import type { ProbeReport } from '../../src/admin/endpoint-probe.ts';
import { rotateCredentials } from '../../src/admin/rotate-credentials.ts';
import type { CredentialPair } from '../../src/core/terms/ports.ts';
import type { FakeSubscription } from './fake-catalogue.ts';
import { otherCredentials, publicUrl, secret } from './samples.ts';
import { type Cut, cutCalls, openAccount, type Situation } from './set-up.ts';

const secondUs = 1_000_000;
const callUs = 1_000;

export interface RotationSituation extends Situation {
  /** Delivery interval in seconds, by Id. */
  deliverEverySeconds?: Record<string, number>;
  /** Seconds from the request to its arrival, including repetitions. */
  latencySeconds?: number;
  /** Interval in seconds at which the receiver reloads the file. */
  noticeSeconds?: number;
  /** The receiver does not answer the probe. */
  isDown?: boolean;
  waitSeconds?: number;
}

export type TestedRotation = Awaited<ReturnType<typeof openRotation>>;

const isSame = (one: CredentialPair, other: CredentialPair) =>
  one.username === other.username && one.password === other.password;
const nameOf = ({ endpoint }: FakeSubscription) => endpoint?.split('/notifications/')[1] ?? null;

/** Opens a context in which the file and all managed subscriptions have `otherCredentials`. */
export async function openRotation(situation: RotationSituation) {
  const { latencySeconds = 2, noticeSeconds = 1, isDown = false } = situation;
  const { waitSeconds = 600 } = situation;
  const planned = await openAccount(situation);
  const { catalogue, administration, nowUs } = planned;
  /** The initial content of the file, and the content after each write. */
  const files = [{ atUs: nowUs(), pairs: [otherCredentials] }];
  /** Deliveries that the receiver refused. */
  const refused: { name: string; username: string; atUs: number }[] = [];
  const reports: string[] = [];
  let inFlight: { name: string | null; pair: CredentialPair; arrivesAtUs: number }[] = [];
  let everySeconds = situation.deliverEverySeconds ?? {};
  let accepted = [otherCredentials];
  let seconds = 0;
  let newPairs = 0;

  const arrive = ({ name, pair }: (typeof inFlight)[number]) => {
    const { username } = pair;
    if (!accepted.some((one) => isSame(one, pair))) {
      refused.push({ name: `${name}`, username, atUs: nowUs() });
      return;
    }
    void administration.markDeliveries([{ subscription: name, username, lastAtUs: nowUs() }]);
  };
  /** Simulates the deliveries and reloads of one second. */
  const second = () => {
    seconds += 1;
    for (const one of catalogue.subscriptions()) {
      const every = everySeconds[one.id];
      if (every === undefined || seconds % every !== 0 || one.status !== 'running') continue;
      const arrivesAtUs = nowUs() + latencySeconds * secondUs;
      if (one.credentials) inFlight.push({ name: nameOf(one), pair: one.credentials, arrivesAtUs });
    }
    for (const delivery of inFlight) if (delivery.arrivesAtUs <= nowUs()) arrive(delivery);
    inFlight = inFlight.filter(({ arrivesAtUs }) => arrivesAtUs > nowUs());
    if (seconds % noticeSeconds === 0) accepted = files.at(-1)?.pairs ?? [];
  };
  let sinceSecondUs = 0;
  const passUs = (us: number) => {
    for (let leftUs = us; leftUs > 0; ) {
      const stepUs = Math.min(leftUs, secondUs - sinceSecondUs);
      planned.pass(stepUs);
      leftUs -= stepUs;
      sinceSecondUs += stepUs;
      if (sinceSecondUs < secondUs) continue;
      sinceSecondUs = 0;
      second();
    }
  };
  const probe = async (_: string, pair: CredentialPair | null): Promise<ProbeReport> => {
    const fault = { code: 'endpoint-login', message: 'it answers 401.', advice: 'Wait.' } as const;
    if (isDown) return { fault: { ...fault, message: 'nobody listens.' }, status: null, tls: null };
    const isKnown = pair !== null && accepted.some((one) => isSame(one, pair));
    return { fault: isKnown ? null : fault, status: isKnown ? 200 : 401, tls: null };
  };
  let calls: string[] = [];
  const rotate = (cut: Cut | null = null) => {
    const process = {
      probe,
      pause: async (ms: number) => passUs(ms * 1_000),
      writePairs: async (pairs: CredentialPair[]) => {
        files.push({ atUs: nowUs(), pairs: [...pairs] });
      },
    };
    const targets = { client: catalogue.client, administration, process };
    const cuttable = cutCalls(targets, cut, () => passUs(callUs));
    calls = cuttable.calls;
    return rotateCredentials(
      { waitMs: waitSeconds * 1_000, skipProbe: false },
      {
        ...{ client: cuttable.client, administration: cuttable.administration },
        ...cuttable.process,
        unlocked: (wait) => wait(),
        readPairs: () => [...(files.at(-1)?.pairs ?? [])],
        newPair: () => {
          newPairs += 1;
          return { username: `earshot-${newPairs}`, password: `made-${newPairs}` };
        },
        publicUrl,
        newSecret: () => secret,
        nowUs,
        report: (line) => void reports.push(line),
      },
    );
  };
  return {
    planned,
    rotate,
    /** The calls of the last rotation. */
    calls: () => calls,
    files,
    refused,
    accepted: () => accepted,
    reports,
    /** Replaces `deliverEverySeconds` from now on. */
    deliver: (every: Record<string, number>) => {
      everySeconds = every;
    },
    pass: (more: number) => passUs(more * secondUs),
  };
}
