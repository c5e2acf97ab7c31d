/** Tries an order where it does not count: at the authority's staging directory. */
import { AcmeProblem, isProofProblem } from './acme-problem.ts';
import type { AcmeWorld } from './acme-world.ts';
import { enterAuthority } from './enter-authority.ts';
import { explainFailure } from './explain-failure.ts';
import { orderCertificate, proveOnly } from './order-certificate.ts';

/** What a rehearsal has shown to work. */
export type Rehearsal = 'issued' | 'proved';

/**
 * The whole order at the staging directory, where one is known; its certificate, which nobody trusts,
 * is dropped. Resolves with null where nothing can be shown there: none is known, or it is down, or
 * refuses for reasons of its own. Rejects when the name cannot be proved, with what explains it.
 */
export async function rehearseAtStaging(world: AcmeWorld): Promise<'issued' | null> {
  const { stagingUrl } = world;
  if (stagingUrl === null) return null;
  const settings = { ...world.settings, directoryUrl: stagingUrl, eab: undefined };
  try {
    const { authority } = await enterAuthority({ ...world, settings });
    const uncounted = { folder: nowhere, noteIssue: async () => undefined };
    await orderCertificate(settings, { ...world, ...uncounted, authority });
    return 'issued';
  } catch (problem) {
    if (isProofProblem(problem)) throw explainFailure(problem, settings);
    if (problem instanceof AcmeProblem) return null;
    throw problem;
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
  await proveOnly(world.settings, { ...world, authority, noteIssue: async () => undefined });
  return 'proved';
}
