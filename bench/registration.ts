/** Registrations of subscriptions, saved without a catalogue. */
import { openStore } from '../test/helpers/store.ts';

type Save = NonNullable<
  Parameters<Awaited<ReturnType<typeof openStore>>['administration']['commit']>[0]['save']
>;

/** Returns a running subscription that was registered at a time and received something then. */
export function registration(
  name: string,
  atUs: number,
  more: Pick<Save, 'events'> & Partial<Save>,
): Save {
  return {
    ...{ name, type: 'push', filter: '', status: 'running', unfinished: false, earlierIds: [] },
    ...{ origin: 'flags', subscriptionId: null, credentialsDigest: null, changedByPerson: false },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null },
    ...more,
  };
}

/** Opens the store of a data folder, and saves a registration. */
export async function saveRegistration(dataDir: string, save: Save): Promise<void> {
  const store = await openStore({ dataDir });
  await store.administration.commit({ save });
  await store.close();
}
