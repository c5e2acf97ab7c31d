/** `earshot coverage`: compares the log with the catalogue, by hour. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import { addSpan, jsonOption, readWindow } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { unknownName } from '../../core/cli/row-forms.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs, weekUs } from '../../core/terms/dates.ts';
import { counted } from '../../core/terms/text.ts';
import type { CompletenessReader, Definition } from './completeness.ts';
import { readSubscriptionCoverage, type SubscriptionCoverage, toCoverageJson } from './coverage.ts';
import { coverageReport } from './report.ts';
import { comparisonOff } from './settings.ts';

export const coverageCommand = defineCommand('coverage', {
  description: 'Show by hour which events of the catalogue are in the log, and which are missing.',
  flags: (command, io) =>
    addSpan(command, io, 'time of the event', '7d')
      .option('--subscription <name>', 'subscription name (default: all)')
      .addOption(jsonOption()),
  help: `An hour is due for comparison half an hour after the end of the hour. The receiver compares each due
hour with the catalogue, and again a day later. \`earshot reconcile\` compares immediately. Columns:
  expected   events in the catalogue that match the filter, since the start of the subscription
  pushed     events that were pushed within half an hour of the event
  late       events that were pushed later, or after earshot had fetched the event
  recovered  events that were not pushed, but fetched from the catalogue
  missing    events that are not in the log
  compared   number of compared hours, and number of due hours
  complete   share of the expected events that are in the log
An hour is shown as pruned if \`earshot prune\` has deleted notifications of this hour.

Fields of --json: those of /api/coverage (docs/reference/http.md).

Exit codes: 0 nothing missing, 1 failed, 2 wrong usage or configuration, 3 events missing.

Examples:
  $ earshot coverage                                     coverage of the last seven days
  $ earshot coverage --since 24h --subscription alps     coverage of one subscription
  $ earshot coverage --since 2026-11-01 --until 2026-12-01 --json   one month, as JSON`,
  run: showCoverage,
});

interface CoverageFlags {
  since?: number;
  until?: number;
  subscription?: string;
  json?: true;
}

/** Rejects with `differences` if events are missing. */
async function showCoverage(io: Io, flags: CoverageFlags): Promise<void> {
  const whyOff = comparisonOff(loadConfig(io, ['dataDir', 'reconcile', 'index']));
  const { subscription } = flags;
  const { fromUs: sinceUs, toUs: untilUs, nowUs } = readWindow(flags, io, { backUs: weekUs });
  const window = { sinceUs, untilUs, subscription, nowUs };
  // Settings and flags are checked before anything is opened.
  await withParts(io, ['reader'], async ({ reader: { completeness } }) => {
    const reports = await readSubscriptionCoverage(completeness, window);
    if (reports.length === 0) return refuseEmpty(completeness, subscription);
    if (flags.json) await printJson(io.stdout, toCoverageJson(reports, window, whyOff));
    else await printReport(io, coverageReport(reports, { comparisonOff: whyOff, nowUs }));
    refuseMissing(reports);
  });
}

/** Rejects with the reason why no subscription is reported. */
async function refuseEmpty(
  { definitions }: Pick<CompletenessReader, 'definitions'>,
  subscription: string | undefined,
): Promise<never> {
  requireDefined(await definitions(), subscription === undefined ? [] : [subscription]);
  const what =
    subscription === undefined ? 'No subscription was' : `Subscription ${subscription} was not`;
  throw new AppError('usage', `${what} registered in this data directory at that time.`, {
    advice: 'See `earshot subscriptions history`.',
  });
}

/**
 * Returns the names of the defined subscriptions. Throws `configuration` if there is none, and `usage` for an unknown one
 * among the `named` ones.
 */
export function requireDefined(
  definitions: readonly Definition[],
  named: readonly string[],
): readonly string[] {
  const known = [...new Set(definitions.map(({ subscription }) => subscription))];
  if (known.length === 0) {
    const message = 'No subscription was ever registered in this data directory.';
    throw new AppError('configuration', message, { advice: 'Run `earshot register` first.' });
  }
  const unknown = named.find((name) => !known.includes(name));
  if (unknown !== undefined) throw unknownName('subscription', unknown, known);
  return known;
}

function refuseMissing(subscriptions: readonly SubscriptionCoverage[]): void {
  const missing = subscriptions.reduce((sum, one) => sum + one.missing, 0);
  if (missing === 0) return;
  const gaps = subscriptions.flatMap(({ hours }) => hours.filter((hour) => hour.missing > 0));
  const first = formatDateUs(Math.min(...gaps.map(({ hourUs }) => hourUs))).slice(0, 16);
  throw new AppError('differences', `${counted(missing, 'event is', 'events are')} missing.`, {
    advice: `To fetch ${missing === 1 ? 'it' : 'them'}: \`earshot reconcile --since ${first}Z\`.`,
  });
}
