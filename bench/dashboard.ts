/** Runs every query of the dashboard on a real Prometheus, with a receiver that has data. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import { openStore } from '../test/helpers/store.ts';
import { type BenchIo, type Cleanup, createCleanup, createProgress } from './harness.ts';
import { freePort } from './processes.ts';
import { createEndpoint, earshotProgram } from './servers.ts';

/** Number of scrapes, one per second; rates use 15. */
const scrapesMin = 20;

/** Panels without data for this receiver, and the reason. */
const mayBeEmpty = new Map([['Last renewal', 'its certificate is from files']]);

/** Maximum number of series shown by name; others are counted. */
const seriesShownMax = 5;

/** Prints the panels with their values. Returns the exit code: 1 if a panel is empty or a rule fails. */
export async function run(_argv: readonly string[], io: BenchIo): Promise<number> {
  const cleanup = createCleanup();
  const progress = createProgress(io.stderr);
  try {
    const folder = cleanup.temporaryFolder(tmpdir());
    progress.show('starting a receiver, a sandbox and Prometheus');
    const receiver = await startMonitoredReceiver(folder, cleanup);
    const { target } = receiver;
    const prometheus = await startPrometheus({ folder, port: await freePort(), target, cleanup });
    progress.show('collecting');
    await waitForScrapes(prometheus);
    const { lines, faults } = await showPanels(prometheus, target);
    progress.clear();
    io.stdout.write(`${lines.join('\n')}\n`);
    faults.push(...(await ruleFaults(prometheus)));
    for (const fault of faults) io.stderr.write(`${fault}\n`);
    await receiver.close();
    return faults.length === 0 ? 0 : 1;
  } finally {
    progress.clear();
    cleanup.run();
  }
}

async function waitForScrapes(prometheus: PrometheusServer): Promise<void> {
  const enough = 'count_over_time(earshot_status_available[10m])';
  while (((await prometheus.ask(enough))[0]?.value ?? 0) < scrapesMin) await delay(500);
}

/** Returns a Markdown table, which is copied to docs/monitoring.md. */
async function showPanels(prometheus: PrometheusServer, instance: string) {
  const faults: string[] = [];
  // Evaluates everything at the same time, like Grafana.
  const time = Date.now() / 1_000;
  const ask: PrometheusServer['ask'] = (query) => prometheus.ask(query, time);
  const lines = ['| row | panel | shows |', '|---|---|---|'];
  for (const { row, panels } of readPanels(instance)) {
    for (const panel of panels) {
      const values = await renderPanel(panel, ask, faults);
      lines.push(`| ${row} | ${panel.title} | ${values} |`);
    }
  }
  return { lines, faults };
}

async function renderPanel(
  panel: Panel,
  ask: PrometheusServer['ask'],
  faults: string[],
): Promise<string> {
  const { title, queries } = panel;
  const texts: string[] = [];
  for (const { query, legend } of queries) {
    const series = (await ask(query)).filter(({ value }) => !Number.isNaN(value));
    if (series.length === 0 && !mayBeEmpty.has(title)) faults.push(`${title}: no data of ${query}`);
    for (const one of series) {
      texts.push(`${nameOf(one, legend)} ${shown(one.value, panel)}`.trim());
    }
  }
  if (texts.length === 0) return `no data: ${mayBeEmpty.get(title) ?? 'unexpected'}`;
  const more = texts.length - seriesShownMax;
  return [...texts.slice(0, seriesShownMax), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

/** Every rule must be evaluated; a healthy receiver triggers none. */
async function ruleFaults(prometheus: PrometheusServer): Promise<string[]> {
  const rules = await prometheus.rules();
  if (rules.length === 0) return ['No alert rules.'];
  return rules
    .filter(({ health, state }) => health !== 'ok' || state === 'firing')
    .map(({ name, health, state, lastError = '' }) => `${name}: ${health}, ${state} ${lastError}`);
}

const dashboardFile = join(import.meta.dirname, '../deploy/grafana/earshot.json');

interface Panel {
  title: string;
  unit: string;
  /** Labels shown instead of values. */
  labels: ReadonlyMap<string, string>;
  queries: { query: string; legend: string }[];
}

/** Reads the shipped dashboard by rows, with Grafana's variables replaced. */
function readPanels(instance: string): { row: string; panels: Panel[] }[] {
  const rows: { row: string; panels: Panel[] }[] = [];
  for (const panel of JSON.parse(readFileSync(dashboardFile, 'utf8')).panels) {
    if (panel.type === 'row') rows.push({ row: panel.title, panels: [] });
    else rows.at(-1)?.panels.push(panelOf(panel, instance));
  }
  return rows;
}

interface ShippedPanel {
  title: string;
  fieldConfig: { defaults: { unit: string; mappings?: Mapping[] } };
  targets: { expr: string; legendFormat: string }[];
}

interface Mapping {
  options: Record<string, { text: string }>;
}

function panelOf({ title, fieldConfig, targets }: ShippedPanel, instance: string): Panel {
  const queries = targets.map(({ expr, legendFormat }) => ({
    legend: legendFormat,
    query: expr
      .replaceAll('$__rate_interval', '15s')
      .replaceAll('$instance', instance)
      .replaceAll('$subscription', '.*'),
  }));
  const { unit, mappings = [] } = fieldConfig.defaults;
  const labels = mappings.flatMap(({ options }) =>
    Object.entries(options).map(([value, { text }]) => [value, text] as const),
  );
  return { title, unit, labels: new Map(labels), queries };
}

/** Formats a value similar to Grafana. */
function shown(value: number, { unit, labels }: Panel): string {
  const label = labels.get(String(value));
  if (label !== undefined) return label;
  const round = (number: number) => String(Number(number.toPrecision(3)));
  switch (unit) {
    case 's':
      if (value >= 86_400) return `${round(value / 86_400)} days`;
      return value < 1 ? `${round(value * 1_000)} ms` : `${round(value)} s`;
    case 'd':
      return `${round(value)} days`;
    case 'bytes':
      return value >= 2 ** 30 ? `${round(value / 2 ** 30)} GiB` : `${round(value / 2 ** 20)} MiB`;
    case 'percentunit':
      return `${round(value * 100)} %`;
    case 'cps':
    case 'reqps':
      return `${round(value)}/s`;
    default:
      return round(value);
  }
}

/** Returns the name of a series in the legend. */
function nameOf({ metric }: Series, legend: string): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');
}

const deploy = join(import.meta.dirname, '../deploy/prometheus');

/** A series of an answer, at one time. */
interface Series {
  metric: Record<string, string>;
  value: number;
}

interface PrometheusServer {
  /** Evaluates a query at a time, seconds since 1970 (default: now). Rejects for an invalid query. */
  ask(query: string, time?: number): Promise<Series[]>;
  /** Returns each alert rule with the result of its evaluation. */
  rules(): Promise<{ name: string; health: string; state: string; lastError?: string }[]>;
}

/** Resolves when Prometheus is ready. It scrapes `target` (host and port) every second. */
async function startPrometheus(options: {
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
    if (child.exitCode !== null) throw new Error('Prometheus exited before it was ready.');
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

/** Returns the data of an answer, in the format of Prometheus API version 1. */
async function answerOf(url: string): Promise<ReturnType<typeof JSON.parse>> {
  const { status, data, error } = JSON.parse(await (await fetch(url)).text());
  if (status !== 'success') throw new Error(`${error} (${decodeURIComponent(url)})`);
  return data;
}

const account = { username: 'sandbox', password: 'sandbox' };

const hourMs = 3_600_000;

/** Configuration of the receiver; its sink accepts everything. */
const config = `export default {
  sinks: { archive: { command: ['cat'], from: 'start' } },
  subscriptions: { demo: { events: ['created'] } },
};
`;

interface MonitoredReceiver {
  /** Host and port of the private listener. */
  target: string;
  close(): Promise<void>;
}

/** Resolves when the receiver is registered and products are published, some twice. */
async function startMonitoredReceiver(
  folder: string,
  cleanup: Cleanup,
): Promise<MonitoredReceiver> {
  const [listenPort, consolePort] = [await freePort(), await freePort()];
  const { authorityPem, certificateFile, keyFile } = await createEndpoint(folder);
  const file = (name: string) => join(folder, name);
  writeFileSync(file('authority.pem'), authorityPem);
  writeFileSync(file('earshot.config.ts'), config);
  const sandbox = await startSandbox({
    account,
    trustedCaPems: [authorityPem],
    ratePerSecond: 20,
    faults: { duplicate: 0.1 },
    past: { durationMs: 6 * hourMs, productsPerDay: 1_000 },
    retryDelaysMs: [100, 200, 400],
    now: Date.now,
  });
  const env = {
    PATH: process.env.PATH ?? '',
    EARSHOT_PUBLIC_URL: `https://localhost:${listenPort}`,
    EARSHOT_LISTEN: `127.0.0.1:${listenPort}`,
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}`,
    EARSHOT_DATA_DIR: file('data'),
    EARSHOT_TLS_CERT: certificateFile,
    EARSHOT_TLS_KEY: keyFile,
    EARSHOT_PROBE_CA: file('authority.pem'),
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: 'sandbox-key',
    EARSHOT_INFERENCE_MODEL: 'openai/gpt-oss-120b',
    EARSHOT_SUMMARY: 'each',
  };
  const start = (...words: string[]) => {
    const child = spawn(process.execPath, earshotProgram(...words), {
      cwd: folder,
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    cleanup.ownProcess(child);
    return child;
  };
  await waitForExit(start('credentials', 'create'));
  await registerEarlier(file('data'));
  const receiver = start('start');
  await waitForLog(receiver, '"ready to receive notifications"');
  await waitForExit(start('register', '--yes'));
  await waitForExit(start('reconcile', '--since', '5h'));
  await waitForExit(start('backup', file('backups')));
  return {
    target: `127.0.0.1:${consolePort}`,
    close: async () => {
      const exit = once(receiver, 'exit');
      receiver.kill('SIGTERM');
      await exit;
      await sandbox.close();
    },
  };
}

/** Saves a registration of five hours ago, because only completed hours are compared. */
async function registerEarlier(dataDir: string): Promise<void> {
  const nowUs = Date.now() * 1_000;
  const atUs = nowUs - 5 * hourMs * 1_000;
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  const save = {
    ...{ name: 'demo', type: 'push' as const, events: ['created'] as const, filter: '' },
    status: 'running' as const,
    ...{
      subscriptionId: null,
      unfinished: false,
      earlierIds: [],
      origin: 'flags' as const,
      changedByPerson: false,
      reported: [],
    },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null },
    credentialsDigest: null,
  };
  await store.administration.commit({ save });
  const gone = { atUs: nowUs, subscription: 'demo', subscriptionId: null, reason: 'A new one.' };
  const history = [{ ...gone, action: 'deleted' as const, actor: 'subscriptions' as const }];
  await store.administration.commit({ removeRegistration: 'demo', history });
  await store.close();
}

/** Rejects with the process's output if it fails. */
async function waitForExit(child: ChildProcess): Promise<void> {
  let output = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${child.spawnargs.slice(3).join(' ')} failed: ${output}`);
}

function waitForLog(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = `${log}${text}`.slice(-20_000);
      if (log.includes(words)) resolve();
    });
    child.once('exit', () => reject(new Error(`The receiver exited: ${log}`)));
  });
}
