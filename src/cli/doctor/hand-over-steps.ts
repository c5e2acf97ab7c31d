/** The doctor's steps about what goes out: sinks, and the channels of alerts. */
import type { Finding } from '../../domain/finding.ts';
import { checkAlerts } from '../../watch/alert-checks.ts';
import { createFindProgram } from '../find-program.ts';
import type { Io } from '../io.ts';
import { type DoctorSettings, fixInFile } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

/** The findings about sinks are called `sink <name>`. */
export function handOverSteps(settings: DoctorSettings, io: Io): Step[] {
  const { sinks, faultySinks, watch, inFile } = settings;
  const findProgram = createFindProgram(io);
  const { signal } = io;
  // What cannot be read has failed as a check.
  const needs = (readable: unknown) => (readable === undefined ? ['configuration'] : []);
  return [
    {
      name: 'sinks',
      needs: needs(sinks),
      run: async (): Promise<Finding[]> => {
        const faults = faultySinks.flatMap(({ name, problems }) =>
          problems.map(
            (message): Finding => ({
              check: `sink ${name}`,
              state: 'fail',
              message,
              advice: fixInFile,
            }),
          ),
        );
        if (sinks?.length === 0 && faults.length > 0) return faults;
        // The NATS client is loaded where there are sinks alone.
        const { checkSinks } = await import('../../sinks/sink-checks.ts');
        const subscriptions = (inFile ?? []).map(({ name }) => name);
        const means = { findProgram, subscriptions, signal };
        return [...(await checkSinks(sinks ?? [], means)), ...faults];
      },
    },
    {
      name: 'alerts',
      needs: needs(watch),
      run: async () => (watch === undefined ? [] : checkAlerts({ ...watch, findProgram, signal })),
    },
  ];
}
