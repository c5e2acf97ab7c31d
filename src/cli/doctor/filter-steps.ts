/**
 * The doctor's step about filters: those that `earshot.config.ts` names, its rules' and sinks' too, and those that
 * are registered. A sink chooses by subscriptions, too: whether these exist is looked at here as well.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkSubscriptionFilter } from '../../admin/plan/check-filters.ts';
import { unknownSubscriptions } from '../../config/sink-subscriptions.ts';
import { type SinkFilterFinding, sinkFilterFindings } from '../../config/sinks-config.ts';
import { subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { ruleFilterFindings } from '../../config/summary-rules.ts';
import type { Finding } from '../../domain/finding.ts';
import type { SinkDefinition } from '../../domain/sinks.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import type { SummaryRule } from '../../domain/summary-rule.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { openStoreReader } from '../../store/store.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

const check = 'filters';

type Filtered = Pick<DesiredSubscription, 'name' | 'events' | 'filter'>;

export function filterSteps({ dataDir, inFile, summaryRules, sinks }: DoctorSettings): Step[] {
  // A file that cannot be read has failed as a check.
  const needs = inFile === undefined ? ['configuration'] : [];
  return [
    {
      name: check,
      needs: [...needs, 'data directory'],
      run: async () => {
        const { registered, everRegistered } = await readRegistered(dataDir);
        const names = [...(inFile ?? []).map(({ name }) => name), ...everRegistered];
        const told = [
          ...checkFilters(inFile ?? null, registered),
          ...checkRules(summaryRules ?? new Map()),
          ...checkSinkFilters(sinks ?? []),
          ...checkSinkSubscriptions(sinks ?? [], names),
        ];
        // All is well only where it is so with all of them.
        const problems = told.filter(({ state }) => state !== 'pass');
        return problems.length > 0 ? problems : told;
      },
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
  return [{ check, state: 'pass', message: 'The filters use documented forms only.' }];
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

/** Those with an error have failed as part of the configuration. */
function checkRules(rules: ReadonlyMap<string, SummaryRule>): Finding[] {
  return ruleFilterFindings(rules).map((one) => warningOf(one, 'decides what is told in words'));
}

/** The same. */
function checkSinkFilters(sinks: readonly SinkDefinition[]): Finding[] {
  return sinkFilterFindings(sinks).map((one) => warningOf(one, 'decides what is handed over'));
}

/** One that is still to come is no error. */
function checkSinkSubscriptions(
  sinks: readonly SinkDefinition[],
  known: readonly string[],
): Finding[] {
  return unknownSubscriptions(sinks, known).map(({ message, hint }) => {
    const advice = `${hint} Nothing is handed over for it until there is one.`;
    return { check, state: 'warn', message, advice };
  });
}

function warningOf(
  { where, finding: { message, hint } }: Pick<SinkFilterFinding, 'where' | 'finding'>,
  what: string,
): Finding {
  const place = `It stands in ${subscriptionsFileName}, and ${what}.`;
  const advice = hint === undefined ? place : `${hint} ${place}`;
  return { check, state: 'warn', message: `${where}: ${message}`, advice };
}

async function readRegistered(
  dataDir: string,
): Promise<{ registered: readonly Filtered[]; everRegistered: readonly string[] }> {
  if (!existsSync(join(dataDir, databaseFileName))) return { registered: [], everRegistered: [] };
  const store = openStoreReader(dataDir);
  try {
    const registered = await store.administration.registrations();
    const definitions = await store.completeness.definitions();
    return { registered, everRegistered: definitions.map(({ subscription }) => subscription) };
  } finally {
    await store.close();
  }
}
