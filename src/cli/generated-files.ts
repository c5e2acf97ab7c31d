/** The pages that are written from the program's own tables: path in the project -> text. */
import { configurationPage, envExample } from '../config/reference.ts';
import { metricsPage } from '../console/metrics/metrics-page.ts';
import { commandLinePage } from './command-reference.ts';
import type { Io, Output } from './io.ts';
import { createProgram } from './program.ts';

export async function generatedFiles(): Promise<Record<string, string>> {
  return {
    '.env.example': envExample(),
    'docs/configuration.md': configurationPage(),
    'docs/cli.md': commandLinePage(await createProgram(idleIo, '')),
    'docs/metrics.md': metricsPage(),
  };
}

const nowhere: Output = { write: () => true, once: () => undefined };

/** Enough of a world for commands that are described and never run. */
export const idleIo: Io = {
  stdout: nowhere,
  stderr: nowhere,
  env: {},
  readFile: () => '',
  nowUs: () => 0,
  newId: () => '',
  newSecret: () => '',
  random: () => 0,
  fetch: () => Promise.reject(new Error('nothing is asked for')),
  localAddresses: () => [],
  pid: 0,
  workingDir: '',
  ask: async () => null,
  signal: new AbortController().signal,
  exit: () => undefined,
};
