/** Tells what the fuzzer has found, as text. */
import { alignTable, figure, megabytes } from '../table.ts';
import type { FuzzReport } from './fuzz.ts';
import type { FuzzedListener } from './fuzz-listener.ts';
import { quantile } from './quantile.ts';

/** Ends with a line break. */
export function renderFuzz({ command, listeners }: FuzzReport): string {
  const harms = listeners.flatMap(({ listener, harms }) =>
    harms.map((harm) => ({ listener, harm })),
  );
  const parts = [
    alignTable([
      [
        ...['listener', 'requests', 'seconds', 'valid pushes', 'stored', 'p50 ms', 'p99 ms'],
        ...['quarantined', 'MB at start', 'MB at most', 'log lines', 'harms'],
      ],
      ...listeners.map(row),
    ]),
    ...listeners.map(answersOf),
    harms.length === 0 ? 'Nothing was harmed.' : `${harms.length} harms:`,
    ...harms.map(({ listener, harm }) =>
      typeof harm === 'string'
        ? `${listener}: ${harm}`
        : `${listener}, case ${harm.index} (${harm.name}): ${harm.what}\n  ${harm.sent}\n  ${harm.answered}`,
    ),
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function row(one: FuzzedListener): string[] {
  const { listener, requests, seconds, pushMs, evidence, memory, harms } = one;
  return [
    ...[
      listener,
      figure(requests),
      figure(seconds),
      figure(pushMs.length),
      figure(evidence.stored),
    ],
    ...[figure(quantile(pushMs, 0.5), 1), figure(quantile(pushMs, 0.99), 1)],
    ...[figure(evidence.quarantined), megabytes(memory.startBytes), megabytes(memory.peakBytes)],
    ...[figure(evidence.logLines), figure(harms.length)],
  ];
}

/** Families by the statuses that they were answered with. */
function answersOf({ listener, answers }: FuzzedListener): string {
  const statuses = [...new Set(Object.values(answers).flatMap((own) => Object.keys(own)))].sort();
  const families = Object.entries(answers).sort(([a], [b]) => (a < b ? -1 : 1));
  const rows = families.map(([family, own]) => [
    family,
    ...statuses.map((status) => figure(own[status] ?? null)),
  ]);
  return alignTable([[`answers (${listener})`, ...statuses], ...rows]);
}
