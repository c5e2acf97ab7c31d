/** One run: load on one running server, its memory watched meanwhile, its file checked afterwards. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { countInRanges } from './answered-ranges.ts';
import { templateCount } from './bodies.ts';
import type { Cleanup } from './cleanup.ts';
import type { Endpoint } from './endpoint.ts';
import type { LoadJob, LoadResult } from './load-job.ts';
import { readMemory } from './process-status.ts';
import type { AckIdForm } from './request-ids.ts';
import { databaseFile, type RunningServer, type ServerName, startServer } from './servers.ts';
import { verifyDatabase } from './verify.ts';

/** What is the same for every run of a benchmark. */
export interface BenchSetting {
  readonly endpoint: Endpoint;
  readonly cleanup: Cleanup;
  /** Where data folders are created. */
  readonly parentFolder: string;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Different bodies that are sent in turn; undefined: `templateCount` of bodies.ts. */
  readonly templateCount?: number;
  /** A number below 65,536 that no other run has. */
  nextRun(): number;
}

/** The figures of one run. Those that do not apply, or cannot be read on this system, are null. */
export interface RunFigures extends Omit<LoadResult, 'answered'> {
  readonly server: ServerName;
  /** Most resident memory seen while the load ran, bytes. */
  readonly residentBytes: number | null;
  /** Most resident memory since the server started, bytes. */
  readonly peakResidentBytes: number | null;
  /** Notifications answered with 200, warm-up included. */
  readonly answered: number;
  readonly missing: number | null;
  readonly repeated: number | null;
  /** Rows in the file at the end. */
  readonly rows: number | null;
  readonly diskBytesPerRow: number | null;
}

const sampleIntervalMs = 100;

/** What a run does beside the load. */
export interface RunSteps {
  /** Variables of earshot beside those that every run has. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Called before the load. */
  readonly prepare?: (running: RunningServer) => Promise<void>;
  /** Called when the load has ended and the server still runs. */
  readonly loaded?: () => void;
}

/** Starts a server on `dataFolder`, measures it, stops it cleanly and checks its file. */
export async function measureServer(
  setting: BenchSetting,
  server: ServerName,
  dataFolder: string,
  { environment = {}, prepare, loaded }: RunSteps = {},
): Promise<RunFigures> {
  const { endpoint, cleanup } = setting;
  const running = await startServer(server, { endpoint, dataFolder, cleanup, environment });
  await prepare?.(running);
  const run = setting.nextRun();
  const sampler = sampleMemory(running.processId);
  const { answered, ...load } = await applyLoad(setting, running, run);
  const memory = sampler.stop();
  loaded?.();
  await running.stop();
  const file = databaseFile(server, dataFolder);
  const verified = file === undefined ? undefined : verifyDatabase(file, run, answered);
  return {
    server,
    ...load,
    ...memory,
    answered: countInRanges(answered),
    missing: verified?.missing ?? null,
    repeated: verified?.repeated ?? null,
    rows: verified?.rows ?? null,
    diskBytesPerRow: verified?.bytesPerRow ?? null,
  };
}

/** What speaks against a run: lost or repeated notifications, other statuses, broken connections. */
export function faultsOf(figures: RunFigures): string[] {
  const faults: string[] = [];
  if (figures.answered === 0) faults.push('nothing was answered with 200');
  if (figures.missing) faults.push(`${figures.missing} answered notifications are not in the file`);
  if (figures.repeated) faults.push(`${figures.repeated} notifications are in the file repeatedly`);
  for (const [status, count] of Object.entries(figures.statuses)) {
    if (status !== '200') faults.push(`${count} answers had status ${status}`);
  }
  for (const [reason, count] of Object.entries(figures.breaks)) {
    faults.push(`${count} connections broke: ${reason}`);
  }
  return faults.map((fault) => `${figures.server}: ${fault}`);
}

async function applyLoad(
  setting: BenchSetting,
  server: RunningServer,
  run: number,
): Promise<LoadResult> {
  const { endpoint, ackIdForm, connections, warmUpMs, measureMs } = setting;
  const templates = Math.max(setting.templateCount ?? templateCount, connections);
  const { authorityPem, username, password } = endpoint;
  const job: LoadJob = {
    host: '127.0.0.1',
    port: server.port,
    path: '/notifications/bench',
    ...{ authorityPem, username, password, ackIdForm, connections, warmUpMs, measureMs, run },
    templateCount: templates,
    serverProcessId: server.processId,
  };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')]);
  setting.cleanup.ownProcess(child);
  // A generator that ended before it read its job is reported by its exit code.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(job));
  const [output, errors, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  if (exitCode !== 0) throw new Error(`the load generator failed:\n${errors}`);
  const result: LoadResult = JSON.parse(output);
  return result;
}

function sampleMemory(processId: number) {
  let residentBytes: number | null = null;
  let peakResidentBytes: number | null = null;
  const sample = () => {
    const memory = readMemory(processId);
    if (memory === undefined) return;
    residentBytes = Math.max(residentBytes ?? 0, memory.residentBytes);
    peakResidentBytes = memory.peakResidentBytes;
  };
  sample();
  const timer = setInterval(sample, sampleIntervalMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return { residentBytes, peakResidentBytes };
    },
  };
}
