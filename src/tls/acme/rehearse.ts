/** Tries an order where it does not count: at the authority's staging directory. */
import { isAcmeProblem, isPassing } from './acme-problem.ts';
import type { AcmeWorld } from './acme-world.ts';
import { enterAuthority } from './enter-authority.ts';
import { explainFailure } from './explain-failure.ts';
import { orderCertificate, proveOnly } from './order-certificate.ts';

/** What a rehearsal has shown to work. */
export type Rehearsal = 'issued' | 'proved';

/**
 * The whole order at the staging directory, where one is known; its certificate, which nobody trusts,
 * is dropped. Resolves with null where nothing can be shown there: none is known, it is down, or it asks
 * for a bound account of its own. Rejects with what explains the failure.
 */
export async function rehearseAtStaging(world: AcmeWorld): Promise<'issued' | null> {
  const { stagingUrl } = world;
  if (stagingUrl === null) return null;
  const settings = { ...world.settings, directoryUrl: stagingUrl, eab: undefined };
  try {
    const { authority } = await enterAuthority({ ...world, settings });
    await orderCertificate(settings, { ...world, authority, folder: nowhere });
    return 'issued';
  } catch (problem) {
    if (isPassing(problem) || isAcmeProblem(problem, 'externalAccountRequired')) return null;
    throw explainFailure(problem, settings);
  }
}

/** An order that is not worth keeping. */
const nowhere = {
  readOrder: async () => null,
  writeOrder: async () => undefined,
  removeOrder: async () => undefined,
};

/** At the staging directory, else at the authority itself, up to where a certificate would be made. */
export async function rehearse(world: AcmeWorld): Promise<Rehearsal> {
  await world.openDoor();
  const staged = await rehearseAtStaging(world);
  if (staged !== null) return staged;
  const { authority } = await enterAuthority(world);
  await proveOnly(world.settings, { ...world, authority });
  return 'proved';
}
