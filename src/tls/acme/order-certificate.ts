/**
 * One order at an authority, from the account to the chain (RFC 8555, 7.1). Everything that an
 * interruption may not lose is on disk before the authority hears of it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { SavedCertificate, SavedOrder } from './acme-folder.ts';
import { AcmeProblem, isAcmeProblem, isPassing, isProofProblem } from './acme-problem.ts';
import { type AcmeOrder, createKey, problemOf } from './authority.ts';
import type { CertificateOrder, OrderWorld } from './certificate-order.ts';
import { proveName } from './prove-name.ts';

/** What is not finished after this is left to the next try, which takes the same order up again. */
const finishTimeoutMs = 90_000;
/** An authority forgets an order after some days; a new one is then the better start. */
const orderAgeUsMax = 24 * 3_600_000_000;

/**
 * Takes up the order that an interruption left behind, or places a new one; proves the name; has the
 * certificate made; fetches it. The order stays on disk. Rejects with AcmeProblem.
 */
export async function orderCertificate(
  order: CertificateOrder,
  world: OrderWorld,
): Promise<SavedCertificate> {
  const { authority, folder, challenges, tell } = world;
  const { directoryUrl, host } = order;
  tell(`asking ${new URL(directoryUrl).host} for a certificate for ${host}`);
  const saved = (await takeUp(order, world)) ?? (await place(order, world));
  let current = await authority.readOrder(saved.url);
  if (current.status === 'pending') {
    tell(`proving by ${order.challenge} that ${host} is ours`);
    await proveOrDrop(current, order, world);
    current = await settled(current, ['pending'], world);
  } else {
    // What a proof that was interrupted may have left behind.
    await challenges.clear();
  }
  tell('having it made');
  if (current.status === 'ready') {
    await countOnce(saved, world);
    current = await authority.finalize(current, saved);
  }
  current = await settled(current, ['pending', 'ready', 'processing'], world);
  if (current.status !== 'valid') {
    await folder.removeOrder();
    throw problemOf(current.error);
  }
  const chain = await authority.downloadChain(current);
  return { directoryUrl, host, key: saved.key, chain };
}

/** Places an order and proves the name, and leaves it at that: no certificate is made. */
export async function proveOnly(order: CertificateOrder, world: OrderWorld): Promise<void> {
  world.tell(`proving by ${order.challenge} that ${order.host} is ours`);
  const placed = await world.authority.createOrder(order.host, null);
  if (placed.status === 'pending') await proveName(placed, order, world);
}

/** A name that was not proved ends its order. */
async function proveOrDrop(
  placed: AcmeOrder,
  order: CertificateOrder,
  world: OrderWorld,
): Promise<void> {
  try {
    await proveName(placed, order, world);
  } catch (problem) {
    if (isProofProblem(problem)) await world.folder.removeOrder();
    throw problem;
  }
}

/** On disk first: a full one ends the try before anything is made, or counted. */
async function countOnce(saved: SavedOrder, { folder, noteIssue }: OrderWorld): Promise<void> {
  if (saved.isCounted) return;
  await folder.writeOrder({ ...saved, isCounted: true });
  await noteIssue();
}

/** The order on disk; null when there is none, or none that leads anywhere. */
async function takeUp(order: CertificateOrder, world: OrderWorld): Promise<SavedOrder | null> {
  const { folder, authority, nowUs } = world;
  const saved = await folder.readOrder();
  if (saved === null) return null;
  const isOurs = saved.directoryUrl === order.directoryUrl && saved.host === order.host;
  const ageUs = nowUs() - saved.placedAtUs;
  if (isOurs && ageUs >= 0 && ageUs < orderAgeUsMax) {
    const known = await authority.readOrder(saved.url).catch((problem: unknown) => {
      // The order is gone; what passes, such as no network, does not speak against it.
      if (isAcmeProblem(problem) && !isPassing(problem)) return null;
      throw problem;
    });
    if (known !== null && known.status !== 'invalid') return saved;
  }
  await folder.removeOrder();
  return null;
}

async function place(order: CertificateOrder, world: OrderWorld): Promise<SavedOrder> {
  const { authority, folder, nowUs } = world;
  const { directoryUrl, host, replaces = null } = order;
  const key = await createKey();
  const { url } = await authority.createOrder(host, replaces).catch((problem: unknown) => {
    // What it replaces must not stand in the way (RFC 9773, 5). Authorities have many words for one
    // that was replaced already, that another account ordered, or that they do not know.
    if (replaces === null || !isAcmeProblem(problem) || isPassing(problem)) throw problem;
    return authority.createOrder(host, null);
  });
  const saved = { directoryUrl, host, url, key, placedAtUs: nowUs(), isCounted: false };
  await folder.writeOrder(saved);
  return saved;
}

/** Reads the order until it has left the states named. */
async function settled(
  order: AcmeOrder,
  states: readonly AcmeOrder['status'][],
  { authority, signal }: OrderWorld,
): Promise<AcmeOrder> {
  let current = order;
  let pauseMs = 500;
  for (let waitedMs = 0; states.includes(current.status); waitedMs += pauseMs) {
    if (waitedMs >= finishTimeoutMs) throw new AcmeProblem('timeout', `still ${current.status}`);
    await delay(pauseMs, undefined, { signal });
    pauseMs = Math.min(pauseMs * 2, 5_000);
    current = await authority.readOrder(current.url);
  }
  return current;
}
