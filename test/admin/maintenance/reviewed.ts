/** A review of one subscription as tests ask for it: what is not named is as it should be. */
import { type ReviewInput, review } from '../../../src/admin/review.ts';
import type { Registration } from '../../../src/domain/account.ts';
import type { Held } from '../plan/fake-catalogue.ts';
import { held, publicUrl, registrationOf, startUs } from '../plan/plan-samples.ts';

export interface Asked {
  /** Fields of the one that is listed; null when it is gone. */
  listed?: Partial<Held> | null;
  /** More that deliver to the same path. */
  more?: Held[];
  registration?: Partial<Registration>;
  lastDeliveryAtUs?: number | null;
  inFile?: ReviewInput['inFile'];
  nowUs?: number;
}

export function reviewed(asked: Asked) {
  const { listed = {}, more = [], registration, lastDeliveryAtUs = null } = asked;
  const { inFile, nowUs = startUs } = asked;
  return review({
    registration: registrationOf(registration),
    inFile,
    candidates: [...(listed === null ? [] : [held(listed)]), ...more],
    lastDeliveryAtUs,
    nowUs,
    publicUrl,
  });
}

/** What is done and noted: "resume", "- paused-by-person deletion-ahead". */
export function verdict(asked: Asked): string {
  const { action, notes } = reviewed(asked);
  return [action ?? '-', ...notes.map(({ code }) => code)].join(' ');
}
