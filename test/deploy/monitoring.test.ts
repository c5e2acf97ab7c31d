/** Dashboard and alert rules as shipped: they query existing metrics, and name existing things. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { generatedFiles } from '../../scripts/generated-files.ts';
import { createMetrics } from '../../src/features/metrics/metrics.ts';
import { sampleStatus } from '../features/status/status-sample.ts';
import { silentLog } from '../helpers/recording-log.ts';
import { metricTable, statusParts } from '../helpers/status.ts';
import { installed } from '../helpers/thorough.ts';

const project = join(import.meta.dirname, '../..');
const deploy = join(project, 'deploy');
const rulesFile = join(deploy, 'prometheus/earshot-rules.yml');

const rulesSchema = z.object({
  groups: z.tuple([
    z.object({
      rules: z.array(
        z.strictObject({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.strictObject({ severity: z.enum(['warning', 'critical']) }),
          annotations: z.strictObject({
            summary: z.string(),
            description: z.string(),
            docs: z.string(),
          }),
        }),
      ),
    }),
  ]),
});
const { rules } = rulesSchema.parse(parse(readFileSync(rulesFile, 'utf8'))).groups[0];

const panelSchema = z.object({
  type: z.string(),
  title: z.string(),
  description: z.string().optional(),
  fieldConfig: z.object({ defaults: z.object({ unit: z.string() }) }).optional(),
  targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).default([]),
});
const dashboardText = readFileSync(join(deploy, 'grafana/earshot.json'), 'utf8');
const dashboard = z.object({ panels: z.array(panelSchema) }).parse(JSON.parse(dashboardText));
const panels = dashboard.panels.filter(({ type }) => type !== 'row');

const withoutVariables = (expr: string) =>
  expr.replaceAll('$__rate_interval', '5m').replaceAll(/"\$(instance|subscription)"/g, '""');

const page = (await generatedFiles())['docs/reference/cli.md'] ?? '';
const headings = [...page.matchAll(/^##+ (earshot [a-z ]+)$/gm)].map(([, command = '']) => command);
/** Commands without subcommands. */
const commands = headings.filter((one) => !headings.some((other) => other.startsWith(`${one} `)));

/** Texts in backquotes that begin like a command, but are not commands. */
function unknownCommands(text: string): string[] {
  const named = [...text.matchAll(/`(earshot [^`]+)`/g)].map(([, one = '']) => one);
  return named.filter((one) => !commands.some((command) => `${one} `.startsWith(`${command} `)));
}

/** Labels that Prometheus adds to everything it scrapes. */
const targetLabels = { instance: '', job: '' };

/** Labels of each series, with the values that the table names; those of the process are by the client library. */
function knownSeries(): Map<string, Record<string, string>> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const ofProcess = registry.getMetricsAsArray().map((metric) => {
    const { name, type, labelNames = [] } = metric as typeof metric & { labelNames?: string[] };
    const labels = Object.fromEntries(labelNames.map((label) => [label, '']));
    return { name, type: String(type), labels };
  });
  const series = [...metricTable, ...ofProcess].flatMap(({ name, type, labels }) => {
    const own = { ...targetLabels, ...labels };
    if (type !== 'histogram') return [[name, own] as const];
    const bucket = [`${name}_bucket`, { ...own, le: '' }] as const;
    return [bucket, [`${name}_sum`, own] as const, [`${name}_count`, own] as const];
  });
  return new Map([['up', targetLabels], ...series]);
}

const known = knownSeries();

/** Returns the unknown names in a query and in the labels that texts refer to; promtool checks the syntax. */
function unknownNames(query: string, usedLabels: readonly string[] = []): string[] {
  const selectors = [...query.matchAll(/\b((?:earshot|process|nodejs)_\w+|up)\b(?:\{([^}]*)\})?/g)];
  const labels = new Set(selectors.flatMap(([, name = '']) => Object.keys(known.get(name) ?? {})));
  const grouped = [...query.matchAll(/\b(?:by|on|ignoring|without|group_left) *\(([^)]*)\)/g)];
  const named = [...usedLabels, ...grouped.flatMap(([, list = '']) => list.match(/\w+/g) ?? [])];
  const inSelectors = selectors.flatMap(([, name = '', matchers = '']) => {
    const own = known.get(name);
    if (own === undefined) return [name];
    return [...matchers.matchAll(/(\w+) *[=!]~? *"([^"]*)"/g)].flatMap(
      ([, label = '', value = '']) => {
        const values = own[label]?.split(', ') ?? [];
        if (own[label] === undefined) return [`${name}{${label}}`];
        return value.split('|').filter((one) => values.length > 1 && !values.includes(one));
      },
    );
  });
  return [...named.filter((label) => !labels.has(label)), ...inSelectors];
}

describe('the dashboard', () => {
  const targets = panels.flatMap(({ title, targets }) =>
    targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
  );

  it('has enough panels, each with a query, a unit and a description', () => {
    expect(panels.length).toBeGreaterThan(35);
    for (const { title, targets, description = '', fieldConfig } of panels) {
      expect(targets.length, title).toBeGreaterThan(0);
      expect(description, title).toMatch(/\.$/);
      expect(fieldConfig?.defaults.unit, title).toMatch(/^\w+$/);
    }
  });

  it.each(targets)('"$title" queries existing metrics: $expr', ({ expr, legendFormat }) => {
    const named = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label);
    expect(unknownNames(withoutVariables(expr), named)).toEqual([]);
  });

  it('names existing commands', () => {
    expect(unknownCommands(dashboardText)).toEqual([]);
  });
});

describe('the alert rules', () => {
  it('are listed in docs/reference/dashboard.md, with their severity', () => {
    const text = readFileSync(join(project, 'docs/reference/dashboard.md'), 'utf8');
    const rows = [...text.matchAll(/^\| `(Earshot\w+)` \| (\w+) \|/gm)];
    const listed = rows.map(([, alert, severity]) => ({ alert, severity }));
    expect(listed).toEqual(
      rules.map(({ alert, labels }) => ({ alert, severity: labels.severity })),
    );
  });

  it.each(rules)('$alert queries existing metrics', ({ expr, annotations }) => {
    const texts = Object.values(annotations).join(' ');
    const named = [...texts.matchAll(/\$labels\.(\w+)/g)].map(([, label = '']) => label);
    expect(unknownNames(expr, named)).toEqual([]);
  });

  it.each(rules)('$alert states what to do, and where to read more', ({ annotations }) => {
    expect(unknownCommands(annotations.description.replaceAll(/\s+/g, ' '))).toEqual([]);
    const [file = '', anchor] = annotations.docs.split('#');
    const titles = [...readFileSync(join(project, file), 'utf8').matchAll(/^#+ (.*)$/gm)];
    const anchors = titles.map(([, title = '']) => title.toLowerCase().replaceAll(/[^\w]+/g, '-'));
    expect(anchors.map((one) => one.replace(/-$/, ''))).toContain(anchor);
  });

  it('fire at least once in their tests', () => {
    const tests = readFileSync(join(import.meta.dirname, 'earshot-rules.yml'), 'utf8');
    const names = rules.map(({ alert }) => alert);
    expect(names.filter((name) => !tests.includes(`alertname="${name}"`))).toEqual([]);
  });
});

describe.runIf(installed('/usr/bin/promtool'))('promtool accepts that', () => {
  const promtool = (words: string[], input = '') => {
    const { status, stdout, stderr } = spawnSync('promtool', words, { input, encoding: 'utf8' });
    return { status, output: `${stdout}${stderr}` };
  };

  it('rules and configuration are valid', () => {
    expect(promtool(['check', 'rules', rulesFile])).toMatchObject({ status: 0 });
    const config = join(deploy, 'prometheus/prometheus.yml');
    expect(promtool(['check', 'config', config])).toMatchObject({ status: 0 });
  });

  it('the rules fire when they should, and only then', { timeout: 120_000 }, () => {
    const ended = promtool(['test', 'rules', join(import.meta.dirname, 'earshot-rules.yml')]);
    expect(ended.status, ended.output).toBe(0);
  });

  it('metric names follow the conventions, except one that counts hours', async () => {
    const metrics = createMetrics(statusParts, silentLog);
    const scraped = await metrics.scrape(async () => sampleStatus());
    const { output } = promtool(['check', 'metrics'], scraped);
    const names = output.split('\n').map((line) => line.split(' ')[0]);
    const own = names.filter((name) => name?.startsWith('earshot_'));
    expect(own).toEqual(['earshot_coverage_unknown_hours']);
  });
});
