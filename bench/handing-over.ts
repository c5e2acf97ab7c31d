/** What sinks cost the intake: one that hangs, and one that takes everything at once, while notifications come in. */
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { measureInTurn, speedRatios } from './in-turn.ts';
import { type BenchSetting, measureServer, type RunFigures } from './measure.ts';
import { type Spread, spreadOf } from './median.ts';
import type { Progress } from './progress.ts';
import { databaseFile, freePort } from './servers.ts';

/** Intake without a sink and with either of two in turn; the product index is on throughout. */
export const sinkStates = ['none', 'hanging', 'taking'] as const;
export type SinkState = (typeof sinkStates)[number];

export interface HandingOver {
  readonly rounds: readonly HandingOverRound[];
  /** Requests per second beside each sink, to those without one: of the rounds' ratios. */
  readonly hangingToNone: Spread | null;
  readonly takingToNone: Spread | null;
  /** What the quick one took per second of load, warm-up included: of the rounds. */
  readonly takenPerSecond: Spread | null;
}

export interface HandingOverRound extends Readonly<Record<SinkState, RunFigures>> {
  /** What waited for the sink that hangs when the load ended. */
  readonly waiting: number;
  /** What the other one had taken by then. */
  readonly taken: number;
}

/** Also starts the web service behind both sinks. */
export async function runHandingOver(
  setting: BenchSetting,
  roundCount: number,
  progress: Progress,
): Promise<HandingOver> {
  const port = await startHook(setting);
  const means = { setting, roundCount, progress };
  const measured = await measureInTurn(means, 'sinks', sinkStates, async (state, dataFolder) => {
    if (state !== 'none') writeConfig(dataFolder, port, state === 'taking' ? 'take' : 'hang');
    let counts = { waiting: 0, taken: 0 };
    const figures = await measureServer(setting, 'earshot', dataFolder, {
      loaded: () => {
        counts = countItems(dataFolder);
      },
    });
    return { figures, counts };
  });
  const rounds = measured.map(({ none, hanging, taking }) => ({
    none: none.figures,
    hanging: hanging.figures,
    taking: taking.figures,
    waiting: hanging.counts.waiting,
    taken: taking.counts.taken,
  }));
  const loadSeconds = (setting.warmUpMs + setting.measureMs) / 1_000;
  return {
    rounds,
    hangingToNone: speedRatios(rounds, ({ hanging, none }) => [hanging, none]),
    takingToNone: speedRatios(rounds, ({ taking, none }) => [taking, none]),
    takenPerSecond: spreadOf(rounds.map(({ taken }) => taken / loadSeconds)),
  };
}

async function startHook({ cleanup }: BenchSetting): Promise<number> {
  const port = await freePort();
  const child = spawn(process.execPath, [join(import.meta.dirname, 'hook-server.ts')], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: 'ignore',
  });
  cleanup.ownProcess(child);
  return port;
}

/** The receiver works in its data folder, and finds the file there. An attempt may last as long as the load. */
function writeConfig(dataFolder: string, port: number, path: 'take' | 'hang'): void {
  const webhook = `http://127.0.0.1:${port}/${path}`;
  const sinks = { sink: { webhook, from: 'start', timeoutSeconds: 3_600 } };
  const text = `export default ${JSON.stringify({ sinks })};\n`;
  writeFileSync(join(dataFolder, 'earshot.config.ts'), text);
}

function countItems(dataFolder: string): { waiting: number; taken: number } {
  const file = databaseFile('earshot', dataFolder);
  if (file === undefined) throw new Error('earshot has no database file');
  const database = new Database(file, { readonly: true });
  try {
    const number = (sql: string) => Number(database.prepare(sql).pluck().get() ?? 0);
    const waiting = number('SELECT count(*) FROM sink_item');
    const read = number("SELECT position FROM reader_cursor WHERE reader = 'sink:sink'");
    return { waiting, taken: Math.max(0, read - waiting) };
  } finally {
    database.close();
  }
}

/** What makes a round worthless: a sink that was not at work. */
export function handingOverFaults({ rounds }: HandingOver): string[] {
  const idle = rounds.filter(({ waiting, taken }) => waiting === 0 || taken === 0).length;
  return idle === 0 ? [] : [`nothing was handed over in ${idle} round(s)`];
}
