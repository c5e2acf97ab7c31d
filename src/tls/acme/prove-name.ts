/** Proves to an authority that the name is ours: answers one challenge of each authorization. */
import { setTimeout as delay } from 'node:timers/promises';
import { AcmeProblem } from './acme-problem.ts';
import {
  type AcmeAuthorization,
  type AcmeChallenge,
  type AcmeOrder,
  createAlpnKeyPair,
  problemOf,
} from './authority.ts';
import type { CertificateOrder, OrderWorld } from './certificate-order.ts';

/** Authorities look from several places, and some look again after a while. */
const proofTimeoutMs = 120_000;

/** Rejects with the authority's reason as AcmeProblem; answers are taken away in any case. */
export async function proveName(
  placed: AcmeOrder,
  order: CertificateOrder,
  world: OrderWorld,
): Promise<void> {
  const { authority, challenges, signal } = world;
  await world.openDoor();
  // What an interrupted order left behind.
  await challenges.clear();
  try {
    for (const authorization of await authority.readAuthorizations(placed)) {
      if (authorization.status === 'pending') await answer(authorization, order, world);
    }
    let pauseMs = 500;
    for (let waitedMs = 0; ; waitedMs += pauseMs) {
      const authorizations = await authority.readAuthorizations(placed);
      for (const authorization of authorizations) refuseFailed(authorization, order);
      if (authorizations.every(({ status }) => status === 'valid')) return;
      if (waitedMs >= proofTimeoutMs)
        throw new AcmeProblem('timeout', 'the name is still unproved');
      await delay(pauseMs, undefined, { signal });
      pauseMs = Math.min(pauseMs * 2, 5_000);
    }
  } finally {
    await challenges.clear();
  }
}

async function answer(
  authorization: AcmeAuthorization,
  { host, challenge: kind }: CertificateOrder,
  { authority, challenges }: OrderWorld,
): Promise<void> {
  const challenge = challengeOf(authorization, kind);
  if (challenge?.token === undefined) {
    const offered = authorization.challenges.map(({ type }) => type).join(', ');
    throw new AcmeProblem('noChallenge', `offered are ${offered}`);
  }
  const text = await authority.keyAuthorization(challenge);
  if (kind === 'http-01') await challenges.put(challenge.token, text);
  else await challenges.putAlpn(await createAlpnKeyPair(host, text));
  // Any other has been told of before an interruption, and is being looked at.
  if (challenge.status === 'pending') await authority.answerChallenge(challenge);
}

function refuseFailed(authorization: AcmeAuthorization, { challenge: kind }: CertificateOrder) {
  if (authorization.status === 'valid' || authorization.status === 'pending') return;
  const failed = challengeOf(authorization, kind);
  if (failed?.error !== undefined) throw problemOf(failed.error);
  throw new AcmeProblem('unauthorized', `the authorization is ${authorization.status}`);
}

function challengeOf(
  { challenges }: AcmeAuthorization,
  kind: CertificateOrder['challenge'],
): AcmeChallenge | undefined {
  return challenges.find(({ type }) => type === kind);
}
