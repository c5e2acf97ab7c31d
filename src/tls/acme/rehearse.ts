/** Tries an order where it does not count: at the authority's staging directory. */
import { isAcmeProblem } from './acme-problem.ts';
import type { AcmeWorld } from './acme-world.ts';
import { enterAuthority } from './enter-authority.ts';
import { orderCertificate, proveOnly } from './order-certificate.ts';

/** What a rehearsal has shown to work. */
export type Rehearsal = 'issued' | 'proved';

/**
 * The whole order at the staging directory, where one is known; its certificate, which nobody trusts,
 * is dropped. Resolves with null where there is none, or it asks for a bound account of its own.
 * Rejects with AcmeProblem.
 */
export async function rehearseAtStaging(world: AcmeWorld): Promise<'issued' | null> {
  const { stagingUrl, settings } = world;
  if (stagingUrl === null) return null;
  const staged = { ...settings, directoryUrl: stagingUrl, eab: undefined };
  const entered = await enterAuthority({ ...world, settings: staged }).catch((problem: unknown) => {
    if (isAcmeProblem(problem, 'externalAccountRequired')) return null;
    throw problem;
  });
  if (entered === null) return null;
  const { authority } = entered;
  const nowhere = {
    readOrder: async () => null,
    writeOrder: async () => undefined,
    removeOrder: async () => undefined,
  };
  await orderCertificate(staged, { ...world, authority, folder: nowhere });
  return 'issued';
}

/** At the staging directory, else at the authority itself, up to where a certificate would be made. */
export async function rehearse(world: AcmeWorld): Promise<Rehearsal> {
  await world.openDoor();
  const staged = await rehearseAtStaging(world);
  if (staged !== null) return staged;
  const { authority } = await enterAuthority(world);
  await proveOnly(world.settings, { ...world, authority });
  return 'proved';
}
