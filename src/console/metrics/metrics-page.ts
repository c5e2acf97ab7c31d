/** Renders the table of metrics for people: `docs/metrics.md`. */
import type { MetricRow } from './metric-row.ts';
import { metricGroups } from './metric-table.ts';

/** The text of `docs/metrics.md`. */
export function metricsPage(): string {
  const sections = metricGroups.map(({ title, rows }) => `## ${title}\n\n${tableOf(rows)}`);
  return `# Metrics

<!-- Written by \`npm run generate\` from src/console/metrics. -->

What \`/metrics\` on the private listener hands out, in Prometheus' text format. How to have them collected, the dashboard and the
alert rules are in [monitoring.md](monitoring.md).

A value that is not known is left out. Counters and histograms begin at 0 with each start.

${sections.join('\n\n')}
`;
}

function tableOf(rows: readonly MetricRow[]): string {
  const lines = rows.map(({ name, type, unit, meaning, labels }) => {
    const named = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values}`);
    return `| \`${name}\` | ${type} | ${unit} | ${[meaning, ...named].join('<br>')} |`;
  });
  return `| metric | type | unit | meaning |\n|---|---|---|---|\n${lines.join('\n')}`;
}
