/** Sample findings for tests of alerts. */

import type { AlertFinding } from '../../../src/core/terms/evaluation.ts';
import type { Alerts } from '../../../src/features/alerts/terms.ts';

const atUs = 1_795_000_000_000_001;

export const finding = (fields: Partial<AlertFinding> = {}): AlertFinding => ({
  kind: 'not-running',
  subject: 'alps',
  level: 'warning',
  text: 'Nothing came from Kärnten €.',
  evidence: ['Usually 20 an hour.', 'Now "0" for 3 hours.'],
  nextStep: 'Run `npm run earshot -- doctor`.',
  ...fields,
});

/** Evaluates the given findings and options, by default for both channels. */
export const settle = (
  alerts: Alerts,
  findings: readonly AlertFinding[],
  options: Partial<Omit<Parameters<Alerts['settleFindings']>[0], 'findings'>> = {},
) =>
  alerts.settleFindings({
    checked: [finding()],
    findings,
    channels: ['url', 'command'],
    atUs,
    ...options,
  });
