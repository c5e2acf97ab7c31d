/** A subscription as the catalogue lists it, and the registration that belongs to it. */
import type { CatalogueSubscription } from '../../../src/admin/subscription-client.ts';
import type { Registration } from '../../../src/domain/account.ts';

export const dayUs = 86_400_000_000;
export const nowUs = Date.UTC(2026, 4, 1, 12) * 1000;
export const publicUrl = 'https://earshot.example.org:8443';

/** Running since ten days ago; its last notification came an hour ago. */
export function listedSubscription(
  fields: Partial<CatalogueSubscription> = {},
): CatalogueSubscription {
  return {
    id: 'id-of-s2',
    status: 'running',
    type: 'push',
    events: ['created'],
    filter: "Collection/Name eq 'SENTINEL-2'",
    endpoint: `${publicUrl}/notifications/s2`,
    submittedAtUs: nowUs - 10 * dayUs,
    lastNotificationAtUs: nowUs - dayUs / 24,
    ...fields,
  };
}

export function registration(fields: Partial<Registration> = {}): Registration {
  return {
    name: 's2',
    events: ['created'],
    filter: "Collection/Name eq 'SENTINEL-2'",
    status: 'running',
    subscriptionId: 'id-of-s2',
    unfinished: false,
    credentialsDigest: null,
    activityAtUs: nowUs - 10 * dayUs,
    notifiedAtUs: nowUs - 10 * dayUs,
    runningSeenAtUs: nowUs - dayUs,
    pausedSeenAtUs: null,
    heldBy: null,
    reported: null,
    ...fields,
  };
}
