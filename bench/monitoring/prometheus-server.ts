/** A real Prometheus, with the configuration as shipped, that collects from one receiver and can be asked. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from '../cleanup.ts';

const deploy = join(import.meta.dirname, '../../deploy/prometheus');

/** One series of an answer: a moment of it. */
export interface Series {
  metric: Record<string, string>;
  value: number;
}

export interface PrometheusServer {
  /** As of a moment, seconds since 1970; now unless told. Rejects for what is no query. */
  ask(query: string, time?: number): Promise<Series[]>;
  /** Each alert rule with what came of its evaluation. */
  rules(): Promise<{ name: string; health: string; state: string; lastError?: string }[]>;
}

/** Resolves when it answers. `target` is host and port; it is asked every second. */
export async function startPrometheus(options: {
  folder: string;
  port: number;
  target: string;
  cleanup: Cleanup;
}): Promise<PrometheusServer> {
  const { folder, port, target, cleanup } = options;
  const shipped = readFileSync(join(deploy, 'prometheus.yml'), 'utf8');
  const config = shipped
    .replace('earshot-rules.yml', join(deploy, 'earshot-rules.yml'))
    .replace('127.0.0.1:8080', target)
    .replace('scrape_interval: 15s', 'scrape_interval: 1s\n    scrape_timeout: 1s');
  writeFileSync(join(folder, 'prometheus.yml'), `global:\n  evaluation_interval: 5s\n${config}`);
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  cleanup.ownProcess(child);
  const api = `http://127.0.0.1:${port}/api/v1`;
  while (!(await isReady(port))) {
    if (child.exitCode !== null) throw new Error('Prometheus ended before it was ready.');
    await delay(100);
  }
  return {
    ask: async (query, time = Date.now() / 1_000) => {
      const asked = new URLSearchParams({ query, time: String(time) });
      const { result } = await answerOf(`${api}/query?${asked}`);
      return result.map(
        ({ metric, value: [, value] }: { metric: object; value: [number, string] }) => ({
          metric,
          value: Number(value),
        }),
      );
    },
    rules: async () => (await answerOf(`${api}/rules`)).groups.flatMap(rulesOf),
  };
}

const rulesOf = ({ rules }: { rules: Awaited<ReturnType<PrometheusServer['rules']>> }) => rules;

async function isReady(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/-/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** The data of an answer; its form is Prometheus' own, of version 1 of its API. */
async function answerOf(url: string): Promise<ReturnType<typeof JSON.parse>> {
  const { status, data, error } = JSON.parse(await (await fetch(url)).text());
  if (status !== 'success') throw new Error(`${error} (${decodeURIComponent(url)})`);
  return data;
}
