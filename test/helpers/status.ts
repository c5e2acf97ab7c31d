/** The parts of the status of the program. */
import { app } from '../../src/app.ts';
import {
  evaluateStatus as evaluateParts,
  loadStatusParts,
  type Status,
  type StatusFacts,
} from '../../src/core/status/status.ts';
import { metricGroups } from '../../src/features/metrics/metric-table.ts';

export const statusParts = await loadStatusParts(app);

export const partNames = statusParts.map(({ name }) => name);

export const alertKinds = statusParts.flatMap(({ alertKinds: kinds = [] }) => kinds);

export const metricTable = metricGroups(statusParts).flatMap(({ rows }) => rows);

export const evaluateStatus = (facts: StatusFacts): Status => evaluateParts(statusParts, facts);
