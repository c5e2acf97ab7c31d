/** What a panel of the dashboard shows, by the questions that it asks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Series } from './prometheus-server.ts';

const file = join(import.meta.dirname, '../../deploy/grafana/earshot.json');

export interface Panel {
  title: string;
  unit: string;
  /** What stands for a value, where it is not the value itself. */
  words: ReadonlyMap<string, string>;
  questions: { query: string; legend: string }[];
}

/** The dashboard as shipped, row by row, with Grafana's variables replaced. */
export function readPanels(instance: string): { row: string; panels: Panel[] }[] {
  const rows: { row: string; panels: Panel[] }[] = [];
  for (const panel of JSON.parse(readFileSync(file, 'utf8')).panels) {
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
export function shown(value: number, { unit, words }: Panel): string {
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
export function nameOf({ metric }: Series, legend: string): string {
  return legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');
}
