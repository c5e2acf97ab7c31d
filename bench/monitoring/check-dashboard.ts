/** Asks a real Prometheus every question of the dashboard, about a receiver that has something to show. */
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { createCleanup } from '../cleanup.ts';
import { createProgress } from '../progress.ts';
import type { BenchIo } from '../run-measurement.ts';
import { freePort } from './free-port.ts';
import { startMonitoredReceiver } from './monitored-receiver.ts';
import { nameOf, type Panel, readPanels, shown } from './panel-values.ts';
import { type PrometheusServer, startPrometheus } from './prometheus-server.ts';

/** Collected once a second; rates look at 15. */
const scrapesMin = 20;

/** Panels of what this receiver cannot have, and why. */
const mayBeEmpty = new Map([['Last renewal', 'its certificate is from files']]);

/** Series beyond these are counted, not named. */
const seriesShownMax = 5;

/** Prints the panels with what they show. Returns the exit code: 1 when one shows nothing, or a rule fails. */
export async function checkDashboard(io: BenchIo): Promise<number> {
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
