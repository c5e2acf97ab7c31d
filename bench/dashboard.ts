/** Asks a real Prometheus every question of the dashboard, about a receiver that has something to show. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import { openStore } from '../src/store/store.ts';
import { type BenchIo, type Cleanup, createCleanup, createProgress } from './harness.ts';
import { freePort } from './processes.ts';
import { createEndpoint, earshotProgram } from './servers.ts';

/** Collected once a second; rates look at 15. */
const scrapesMin = 20;

/** Panels of what this receiver cannot have, and why. */
const mayBeEmpty = new Map([['Last renewal', 'its certificate is from files']]);

/** Series beyond these are counted, not named. */
const seriesShownMax = 5;

/** Prints the panels with what they show. Returns the exit code: 1 when one shows nothing, or a rule fails. */
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
    await collected(prometheus);
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

async function collected(prometheus: PrometheusServer): Promise<void> {
  const enough = 'count_over_time(earshot_status_available[10m])';
  while (((await prometheus.ask(enough))[0]?.value ?? 0) < scrapesMin) await delay(500);
}

/** As a table of Markdown: it stands in docs/monitoring.md. */
async function showPanels(prometheus: PrometheusServer, instance: string) {
  const faults: string[] = [];
  // All of it as of one moment, as Grafana asks.
  const time = Date.now() / 1_000;
  const ask: PrometheusServer['ask'] = (query) => prometheus.ask(query, time);
  const lines = ['| row | panel | shows |', '|---|---|---|'];
  for (const { row, panels } of readPanels(instance)) {
    for (const panel of panels) {
      const values = await valuesOf(panel, ask, faults);
      lines.push(`| ${row} | ${panel.title} | ${values} |`);
    }
  }
  return { lines, faults };
}

async function valuesOf(
  panel: Panel,
  ask: PrometheusServer['ask'],
  faults: string[],
): Promise<string> {
  const { title, questions } = panel;
  const texts: string[] = [];
  for (const { query, legend } of questions) {
    const series = (await ask(query)).filter(({ value }) => !Number.isNaN(value));
    if (series.length === 0 && !mayBeEmpty.has(title)) faults.push(`${title}: no data of ${query}`);
    for (const one of series) {
      texts.push(`${nameOf(one, legend)} ${shown(one.value, panel)}`.trim());
    }
  }
  if (texts.length === 0) return `nothing: ${mayBeEmpty.get(title) ?? 'it should'}`;
  const more = texts.length - seriesShownMax;
  return [...texts.slice(0, seriesShownMax), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

/** Rules must be evaluated; a receiver that is well raises none that speaks at once. */
async function ruleFaults(prometheus: PrometheusServer): Promise<string[]> {
  const rules = await prometheus.rules();
  if (rules.length === 0) return ['There are no alert rules.'];
  return rules
    .filter(({ health, state }) => health !== 'ok' || state === 'firing')
    .map(({ name, health, state, lastError = '' }) => `${name}: ${health}, ${state} ${lastError}`);
}

const dashboardFile = join(import.meta.dirname, '../deploy/grafana/earshot.json');

interface Panel {
  title: string;
  unit: string;
  /** What stands for a value, where it is not the value itself. */
  words: ReadonlyMap<string, string>;
  questions: { query: string; legend: string }[];
}

/** The dashboard as shipped, row by row, with Grafana's variables replaced. */
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
  const questions = targets.map(({ expr, legendFormat }) => ({
    legend: legendFormat,
    query: expr
      .replaceAll('$__rate_interval', '15s')
      .replaceAll('$instance', instance)
      .replaceAll('$subscription', '.*'),
  }));
  const { unit, mappings = [] } = fieldConfig.defaults;
  const words = mappings.flatMap(({ options }) =>
    Object.entries(options).map(([value, { text }]) => [value, text] as const),
  );
  return { title, unit, words: new Map(words), questions };
}

/** A value as Grafana writes it, about. */
function shown(value: number, { unit, words }: Panel): string {
  const word = words.get(String(value));
  if (word !== undefined) return word;
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

/** The name of a series in the legend. */
function nameOf({ metric }: Series, legend: string): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');
}

const deploy = join(import.meta.dirname, '../deploy/prometheus');

/** One series of an answer: a moment of it. */
interface Series {
  metric: Record<string, string>;
  value: number;
}

interface PrometheusServer {
  /** As of a moment, seconds since 1970; now unless told. Rejects for what is no query. */
  ask(query: string, time?: number): Promise<Series[]>;
  /** Each alert rule with what came of its evaluation. */
  rules(): Promise<{ name: string; health: string; state: string; lastError?: string }[]>;
}

/** Resolves when it answers. `target` is host and port; it is asked every second. */
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

const account = { username: 'sandbox', password: 'sandbox' };

const hourMs = 3_600_000;

/** In the folder: takes what it is given, and answers well. */
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

/** Resolves when it is registered and products are published; some are sent twice, a few to nobody. */
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
  await ended(start('credentials', 'create'));
  await registerEarlier(file('data'));
  const receiver = start('start');
  await said(receiver, '"ready: notifications are taken"');
  await ended(start('register', '--yes'));
  await ended(start('reconcile', '--since', '5h'));
  await ended(start('backup', '--to', file('backup.db')));
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

/** Five hours ago, until now: an hour is compared when it has ended. */
async function registerEarlier(dataDir: string): Promise<void> {
  const nowUs = Date.now() * 1_000;
  const atUs = nowUs - 5 * hourMs * 1_000;
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  const save = {
    ...{ name: 'demo', events: ['created'] as const, filter: '', status: 'running' as const },
    ...{ subscriptionId: null, unfinished: false, heldBy: null, reported: null },
    ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs, pausedSeenAtUs: null },
    credentialsDigest: null,
  };
  await store.administration.commit({ save });
  const gone = { atUs: nowUs, subscription: 'demo', subscriptionId: null, reason: 'A new one.' };
  const history = [{ ...gone, action: 'deleted' as const, actor: 'subscriptions' as const }];
  await store.administration.commit({ removeRegistration: 'demo', history });
  await store.close();
}

/** Rejects with what it had to say when it fails. */
async function ended(child: ChildProcess): Promise<void> {
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${child.spawnargs.slice(3).join(' ')} failed: ${said}`);
}

function said(child: ChildProcess, words: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      log = `${log}${text}`.slice(-20_000);
      if (log.includes(words)) resolve();
    });
    child.once('exit', () => reject(new Error(`The receiver ended: ${log}`)));
  });
}
