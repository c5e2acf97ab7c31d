/** The doctor's step about filters: those that `earshot.config.ts` names, and those that are registered. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkSubscriptionFilter } from '../../admin/plan/check-filters.ts';
import type { Finding } from '../../domain/finding.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { databaseFileName } from '../../store/database.ts';
import { openStoreReader } from '../../store/store.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

const check = 'filters';

type Filtered = Pick<DesiredSubscription, 'name' | 'events' | 'filter'>;

export function filterSteps({ dataDir, inFile }: DoctorSettings): Step[] {
  // A file that cannot be read has failed as a check.
  const needs = inFile === undefined ? ['configuration'] : [];
  return [
    {
      name: check,
      needs: [...needs, 'data directory'],
      run: async () => checkFilters(inFile ?? null, await readRegistered(dataDir)),
    },
  ];
}

/** What is wanted counts; without a file, what is registered. */
function checkFilters(
  inFile: readonly Filtered[] | null,
  registered: readonly Filtered[],
): Finding[] {
  const all = inFile ?? registered;
  if (all.length === 0) return [];
  const placeOf = ({ name }: Filtered) =>
    inFile === null ? `subscriptions show ${name}` : `filter check --subscription ${name}`;
  const findings = all.flatMap((one) => findingsOf(one, registered, placeOf(one)));
  if (findings.length > 0) return findings;
  return [{ check, state: 'pass', message: 'The catalogue would take them as they are meant.' }];
}

function findingsOf(
  subscription: Filtered,
  registered: readonly Filtered[],
  command: string,
): Finding[] {
  const { name, filter } = subscription;
  const isAccepted = registered.some((one) => one.name === name && one.filter === filter);
  return checkSubscriptionFilter(subscription).flatMap(({ findings }) =>
    findings.map(({ severity, message, hint }): Finding => {
      // What the catalogue has accepted once is no reason to fail.
      const fails = severity === 'error' && !isAccepted;
      return {
        check,
        state: fails ? 'fail' : 'warn',
        message: `"${name}": ${message}`,
        advice: `${hint === undefined ? '' : `${hint} `}\`earshot ${command}\` shows it.`,
      };
    }),
  );
}

async function readRegistered(dataDir: string): Promise<Filtered[]> {
  if (!existsSync(join(dataDir, databaseFileName))) return [];
  const store = openStoreReader(dataDir);
  try {
    return await store.administration.registrations();
  } finally {
    await store.close();
  }
}
