/** Runs every query of the dashboard on a real Prometheus, with a receiver that has data. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openStore } from '../test/helpers/store.ts';
import { type Cleanup, defineBenchmark } from './harness.ts';
import { freePort } from './processes.ts';
import { registration, saveRegistration } from './registration.ts';
import { runCommand, startOutsideServices } from './rest-receiver.ts';
import { startServer } from './servers.ts';

/** Number of scrapes, one per second; rates use 15. */
const scrapesMin = 20;

/** Panels without data for this receiver: its certificate is from files. */
const mayBeEmpty = new Set(['Last renewal']);

/** Fails if a panel is empty or a rule fails. */
export const benchmark = defineBenchmark({
  command: 'npm run check:dashboard --',
  about: 'Runs every query of the dashboard on a real Prometheus, with a receiver that has data.',
  options: {},
  async measure(_, { cleanup, progress, folder: parent }) {
    const folder = cleanup.temporaryFolder(parent);
    progress.show('starting a receiver, a sandbox and Prometheus');
    const receiver = await startMonitoredReceiver(folder, cleanup);
    const prometheus = await startPrometheus(folder, receiver.target, cleanup);
    progress.show('collecting');
    const enough = 'count_over_time(earshot_status_available[10m])';
    while (((await prometheus.ask(enough))[0]?.value ?? 0) < scrapesMin) await delay(500);
    const { lines, faults } = await showPanels(prometheus, receiver.target);
    const rules = await prometheus.rules();
    // Every rule must be evaluated; a healthy receiver triggers none.
    const bad = rules.filter(({ health, state }) => health !== 'ok' || state === 'firing');
    if (rules.length === 0) faults.push('No alert rules.');
    faults.push(...bad.map((rule) => JSON.stringify(rule)));
    await receiver.close();
    const text = [['| row | panel |', '|---|---|', ...lines].join('\n')];
    return { setting: 'panels, for docs/reference/dashboard.md', figures: { lines }, text, faults };
  },
});

/** Returns the rows of a Markdown table. */
async function showPanels({ ask }: PrometheusServer, instance: string) {
  const [lines, faults]: [string[], string[]] = [[], []];
  // Evaluates everything at the same time, like Grafana.
  const time = Date.now() / 1_000;
  let row = '';
  const { panels }: { panels: Panel[] } = JSON.parse(readFileSync(dashboardFile, 'utf8'));
  for (const { type, title, targets } of panels) {
    if (type === 'row') {
      row = title;
      continue;
    }
    lines.push(`| ${row} | ${title} |`);
    for (const { expr } of targets) {
      const query = expr
        .replaceAll('$__rate_interval', '15s')
        .replaceAll('$instance', instance)
        .replaceAll('$subscription', '.*');
      const series = (await ask(query, time)).filter(({ value }) => !Number.isNaN(value));
      if (series.length === 0 && !mayBeEmpty.has(title))
        faults.push(`${title}: no data of ${query}`);
    }
  }
  return { lines, faults };
}

const dashboardFile = join(import.meta.dirname, '../deploy/grafana/earshot.json');

/** A panel, or the title of a row. */
interface Panel {
  type: string;
  title: string;
  targets: { expr: string }[];
}

const deploy = join(import.meta.dirname, '../deploy/prometheus');

/** A series of an answer, at one time. */
interface Series {
  value: number;
}

interface PrometheusServer {
  /** Evaluates a query at a time, seconds since 1970 (default: now). Rejects for an invalid query. */
  ask(query: string, time?: number): Promise<Series[]>;
  /** Returns each alert rule with the result of its evaluation. */
  rules(): Promise<Rule[]>;
}

interface Rule {
  health: string;
  state: string;
}

/** Resolves when Prometheus is ready. It scrapes `target` (host and port) every second. */
async function startPrometheus(
  folder: string,
  target: string,
  cleanup: Cleanup,
): Promise<PrometheusServer> {
  const port = await freePort();
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
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (child.exitCode !== null) throw new Error('Prometheus exited before it was ready.');
    await delay(100);
  }
  return {
    ask: async (query, time = Date.now() / 1_000) => {
      const asked = new URLSearchParams({ query, time: String(time) });
      const { result } = await answerOf(`${api}/query?${asked}`);
      return result.map(({ value: [, value] }: { value: [number, string] }) => ({
        value: Number(value),
      }));
    },
    rules: async () => {
      const { groups }: { groups: { rules: Rule[] }[] } = await answerOf(`${api}/rules`);
      return groups.flatMap(({ rules }) => rules);
    },
  };
}

/** Returns the data of an answer, in the format of Prometheus API version 1. */
async function answerOf(url: string): Promise<ReturnType<typeof JSON.parse>> {
  const { status, data, error } = JSON.parse(await (await fetch(url)).text());
  if (status !== 'success') throw new Error(`${error} (${decodeURIComponent(url)})`);
  return data;
}

const hourMs = 3_600_000;

/** Configuration of the receiver; its sink accepts everything. */
const config = `export default {
  sinks: { archive: { command: ['cat'], from: 'start' } },
  subscriptions: { demo: { events: ['created'] } },
};
`;

/** Resolves when the receiver is registered and products are published, some twice; `target` is host and port. */
async function startMonitoredReceiver(folder: string, cleanup: Cleanup) {
  const services = await startOutsideServices(folder, cleanup, {
    ratePerSecond: 20,
    faults: { duplicate: 0.1 },
    past: { durationMs: 6 * hourMs, productsPerDay: 1_000 },
    retryDelaysMs: [100, 200, 400],
  });
  const dataFolder = join(folder, 'data');
  await registerEarlier(dataFolder);
  writeFileSync(join(dataFolder, 'earshot.config.ts'), config);
  const target = `127.0.0.1:${await freePort()}`;
  const environment = {
    ...services.environment(dataFolder, await freePort()),
    EARSHOT_CONSOLE_LISTEN: target,
  };
  const { endpoint } = services;
  const receiver = await startServer('earshot', { endpoint, dataFolder, cleanup, environment });
  await runCommand(['register', '--yes'], { environment, dataFolder });
  await runCommand(['reconcile', '--since', '5h'], { environment, dataFolder });
  await runCommand(['backup', join(folder, 'backups')], { environment, dataFolder });
  return {
    target,
    close: async () => {
      await receiver.stop();
      await services.close();
    },
  };
}

/** Saves a registration of five hours ago, because only completed hours are compared. */
async function registerEarlier(dataDir: string): Promise<void> {
  const nowUs = Date.now() * 1_000;
  const atUs = nowUs - 5 * hourMs * 1_000;
  await saveRegistration(dataDir, registration('demo', atUs, { events: ['created'] }));
  const store = await openStore({ dataDir });
  const gone = { atUs: nowUs, subscription: 'demo', subscriptionId: null, reason: 'A new one.' };
  const history = [{ ...gone, action: 'deleted' as const, actor: 'subscriptions' as const }];
  await store.administration.commit({ removeRegistration: 'demo', history });
  await store.close();
}
