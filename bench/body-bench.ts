/** The benchmark of bodies from command line to exit code. */
import { tmpdir } from 'node:os';
import { bodyKinds, isThere } from './body-kinds.ts';
import { type BodyBenchOptions, bodyHelpText, parseBodyOptions } from './body-options.ts';
import { type BodyReport, judgeBodies, renderBodyReport } from './body-report.ts';
import { arrivals, type BodySizes, measureSizes } from './body-sizes.ts';
import { type BodySpeed, runBodySpeed } from './body-speed.ts';
import type { Cleanup } from './cleanup.ts';
import { createEndpoint } from './endpoint.ts';
import { describeMachine } from './machine.ts';
import { faultsOf } from './measure.ts';
import type { Progress } from './progress.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';

/** Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runBodyBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseBodyOptions,
    helpText: bodyHelpText,
    measure: measureBodies,
    render: renderBodyReport,
    hasFailed: ({ faults, targets }: BodyReport, options: BodyBenchOptions) =>
      faults.length > 0 || (options.check && targets.some(({ met }) => met !== true)),
  };
  return runMeasurement(measurement, argv, io);
}

async function measureBodies(
  options: BodyBenchOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<BodyReport> {
  const parentFolder = options.folder ?? tmpdir();
  const means = { cleanup, parentFolder, progress };
  const speed = options.speed ? await measureSpeed(options, means) : null;
  const sizes: BodySizes[] = [];
  for (const kind of bodyKinds.filter(isThere)) {
    for (const arrival of arrivals) {
      const count = arrival === 'full speed' ? options.notifications : options.singles;
      sizes.push(await measureSizes({ kind, arrival, count }, means));
    }
  }
  const runs = (speed?.rounds ?? []).flatMap((round) => Object.values(round));
  return {
    machine: describeMachine(parentFolder),
    command: ['npm run bench:bodies --', ...argv].join(' '),
    ...{ speed, sizes, targets: judgeBodies(speed, sizes), faults: runs.flatMap(faultsOf) },
  };
}

async function measureSpeed(
  { connections, warmUpMs, measureMs, rounds }: BodyBenchOptions,
  {
    cleanup,
    parentFolder,
    progress,
  }: { cleanup: Cleanup; parentFolder: string; progress: Progress },
): Promise<BodySpeed> {
  let runs = 0;
  const setting = {
    endpoint: await createEndpoint(cleanup.temporaryFolder(parentFolder)),
    ackIdForm: 'observed' as const,
    nextRun: () => {
      runs += 1;
      return runs;
    },
    ...{ cleanup, parentFolder, connections, warmUpMs, measureMs },
  };
  return runBodySpeed(setting, rounds, progress);
}
