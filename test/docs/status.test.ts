/**
 * docs/monitoring.md shows the command's output for the figures of this test. To update the page:
 * `npx vitest run test/docs/status.test.ts --update`.
 */

import { expect, it } from 'vitest';
import { printReport } from '../../src/core/cli/print-report.ts';
import type { StatusFacts } from '../../src/core/status/status.ts';
import { statusReport } from '../../src/features/status/command.ts';
import { dayUs, hourUs, wellFacts } from '../features/status/status-facts.ts';
import { createStream } from '../helpers/fake-io.ts';
import { evaluateStatus } from '../helpers/status.ts';
import { asOnPages, readPage } from './console-sessions.ts';

const columnsMax = 100;
const linesMax = 24;

/** Prints as on a terminal of this width, without colour. */
async function printed(facts: StatusFacts): Promise<string> {
  const { output, bytes } = createStream({ isTTY: true, columns: columnsMax });
  const io = { stdout: output, stderr: output, env: { NO_COLOR: '1', ...asOnPages } };
  await printReport(io, statusReport(evaluateStatus(facts)));
  return bytes().toString();
}

/** A certificate that could not be renewed for two weeks, and a sink that is down. */
function degraded(): StatusFacts {
  const facts = wellFacts();
  const { certificate, sinks, atUs } = facts;
  const notAfterUs = atUs + 9.5 * dayUs;
  const lastFailure = 'Port 80 could not be reached.';
  return {
    ...facts,
    certificate: certificate && { ...certificate, notAfterUs, lastFailure },
    sinks: sinks.map((sink) => ({
      ...{ ...sink, waiting: 1_000, lastError: 'it answered 502' },
      ...{ oldestWaitingAtUs: atUs - 9 * hourUs },
    })),
  };
}

it('the page on monitoring shows the printed output, on one screen', async () => {
  const screen = await printed(degraded());
  let shown = 0;
  const page = readPage('monitoring.md').replaceAll(
    /^(```console\n\$ \.\/earshot status\n).*?^```$/gms,
    (_, begin) => {
      shown += 1;
      return `${begin}${screen}\`\`\``;
    },
  );
  expect(shown).toBe(1);
  const lines = screen.trimEnd().split('\n');
  expect(lines.length).toBeLessThanOrEqual(linesMax);
  expect(lines.filter(({ length }) => length > columnsMax)).toEqual([]);
  await expect(page).toMatchFileSnapshot('../../docs/monitoring.md');
});
