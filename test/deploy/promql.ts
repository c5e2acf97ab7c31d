/** Parses PromQL with Prometheus' own grammar, and checks it against the table of metrics. */
import { parser } from '@prometheus-io/lezer-promql';
import { collectDefaultMetrics, Registry } from 'prom-client';
import { metricTable } from '../../src/features/metrics/metric-table.ts';

interface Selector {
  name: string;
  matchers: { label: string; operator: string; value: string }[];
}

export interface Query {
  selectors: Selector[];
  /** Labels of `by`, `on`, `without`, `group_left` and similar keywords. */
  grouping: string[];
  /** Texts that are not PromQL. */
  errors: string[];
}

/** Expects Grafana's variables to be replaced. */
export function readQuery(text: string): Query {
  const query: Query = { selectors: [], grouping: [], errors: [] };
  parser.parse(text).iterate({
    enter: ({ name, node, from, to, type }) => {
      const here = text.slice(from, to);
      if (type.isError) query.errors.push(`${text.slice(0, from)}⟨${here}⟩`);
      if (name === 'VectorSelector') query.selectors.push({ name: here, matchers: [] });
      const selector = query.selectors.at(-1);
      if (name === 'Identifier' && selector !== undefined) selector.name = here;
      if (name === 'LabelName' && node.parent?.name === 'GroupingLabels') query.grouping.push(here);
      if (name !== 'UnquotedLabelMatcher') return;
      const [, label = '', operator = '', value = ''] =
        /^\s*(\w+)\s*(=~|!~|!=|=)\s*"(.*)"\s*$/s.exec(here) ?? [];
      selector?.matchers.push({ label, operator, value });
    },
  });
  return query;
}

/** Labels that Prometheus adds to everything it scrapes. */
const targetLabels = ['instance', 'job'];

/** Metrics of the process, by the client library. */
function processMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry.getMetricsAsArray().map((metric) => {
    const { name, type, labelNames = [] } = metric as typeof metric & { labelNames?: string[] };
    return {
      name,
      type: String(type),
      labels: Object.fromEntries(labelNames.map((one) => [one, ''])),
    };
  });
}

const rows = new Map(
  [...metricTable, ...processMetrics()].flatMap((row) =>
    row.type === 'histogram'
      ? ['_bucket', '_sum', '_count'].map((end) => [`${row.name}${end}`, row] as const)
      : [[row.name, row] as const],
  ),
);

/**
 * Possible labels of a series with this name, with the values that the table names; null for any
 * value.
 */
function labelsOf(name: string): Map<string, string[] | null> | null {
  // Added by Prometheus itself for each target.
  if (name === 'up') return new Map(targetLabels.map((label) => [label, null]));
  const row = rows.get(name);
  if (row === undefined) return null;
  const own = Object.entries(row.labels).map(([label, values]) => {
    const listed = values.split(', ');
    return [label, listed.length > 1 ? listed : null] as const;
  });
  const others = name.endsWith('_bucket') ? [...targetLabels, 'le'] : targetLabels;
  return new Map([...own, ...others.map((label) => [label, null] as const)]);
}

/** Labels of all series in the query. */
export function labelsIn({ selectors }: Query): Set<string> {
  return new Set(selectors.flatMap(({ name }) => [...(labelsOf(name)?.keys() ?? [])]));
}

/** Findings for queried names that no scrape provides. */
export function faultsOf(query: Query): string[] {
  const known = labelsIn(query);
  const unknown = query.grouping.filter((label) => !known.has(label));
  return [
    ...query.errors,
    ...unknown.map((label) => `nothing in it has the label ${label}`),
    ...query.selectors.flatMap(selectorFaults),
  ];
}

function selectorFaults({ name, matchers }: Selector): string[] {
  const labels = labelsOf(name);
  if (labels === null) return [`there is no ${name}`];
  return matchers.flatMap(({ label, value }) => {
    const values = labels.get(label);
    if (values === undefined) return [`${name} has no label ${label}`];
    const wrong = value.split('|').filter((one) => values !== null && !values.includes(one));
    return wrong.map((one) => `${label} of ${name} is never ${one}`);
  });
}
