/** The doctor's checks of sinks: their settings, filters and targets. Findings of a sink are named `sink <name>`. */

import type { Io } from '../../core/cli/io.ts';
import { loadSubscriptionsFile } from '../../core/config/subscriptions-file.ts';
import { type DoctorSlot, fixInFile, needsOf, settingFinding } from '../../core/doctor/steps.ts';
import { createFindProgram } from '../../core/host/run-program.ts';
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import { openStoreReader } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import { type LoadedSinks, loadEachSink, sinkFilterFindings } from './definitions.ts';
import { checkSinks } from './registry.ts';

export const stepsOf: DoctorSlot['stepsOf'] = async ({ dataDir }, io, { attempt }) => {
  const sinks = await attempt(() => loadEachSink(io), fixInFile);
  const { definitions = [], faulty = [] } = sinks ?? {};
  const deps = { findProgram: createFindProgram(io), signal: io.signal };
  const run = async () => {
    const faults = faulty.flatMap(({ name, problems }) =>
      problems.map((problem) => settingFinding(`sink ${name}`, problem)),
    );
    const findings = [...(await checkSinks(definitions, deps)), ...faults];
    const none = finding('sinks', 'ok', 'No sinks are configured in earshot.config.ts.');
    return findings.length === 0 ? [none] : findings;
  };
  return [
    {
      name: 'filters',
      needs: [...needsOf(sinks), 'data directory'],
      run: () => checkFilters(definitions, dataDir, io),
    },
    { name: 'sinks', needs: needsOf(sinks), run },
  ];
};

/** Warnings only: errors have failed as part of the configuration, and a subscription may be registered later. */
async function checkFilters(
  definitions: LoadedSinks['definitions'],
  dataDir: string,
  io: Io,
): Promise<Finding[]> {
  if (definitions.length === 0) return [];
  const inFile = (await loadSubscriptionsFile(io)) ?? [];
  const store = openStoreReader(dataDir, tablesOf(io.features));
  const registered = await store.completeness.definitions().finally(() => store.close());
  const known = [...inFile.map(({ name }) => name), ...registered.map((one) => one.subscription)];
  const names = [...new Set(known)].toSorted().join(', ');
  const all = names === '' ? 'No subscription is known yet.' : `Known subscriptions: ${names}.`;
  const unknown = definitions.flatMap(({ name, subscriptions }) =>
    subscriptions
      .filter((one) => !known.includes(one))
      .map((one) => `sinks.${name}.subscriptions: unknown subscription ${one}.`),
  );
  const [check, level] = ['filters', 'warning'] as const;
  return [
    ...sinkFilterFindings(definitions).map(({ where, finding: { message, hint = '' } }) =>
      finding(check, level, `${where}: ${message}`, `${hint} ${fixInFile}`.trim()),
    ),
    ...unknown.map((text) =>
      finding(check, level, text, `${all} Until then, the sink gets none of its pushes.`),
    ),
  ];
}
