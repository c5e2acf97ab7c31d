/** Reads as much of the configuration as can be read: a doctor goes on where other commands stop. */

import type { ProbeEndpoint } from '../../admin/endpoint/endpoint-probe.ts';
import { type AccountConfig, readAccountConfig } from '../../config/account-config.ts';
import { readWatchConfig, type WatchConfig } from '../../config/completeness-config.ts';
import { readServeConfig, type ServeConfig } from '../../config/read-config.ts';
import { readVariables } from '../../config/read-variables.ts';
import { type LoadedSinks, loadEachSink } from '../../config/sinks-config.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../../config/subscriptions-file.ts';
import { readSummaryConfig, type SummaryConfig } from '../../config/summary-config.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { Finding } from '../../domain/finding.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { areAllOff, type SummaryRule } from '../../domain/summary-rule.ts';
import type { Io } from '../io.ts';
import { probeTrusting } from '../probe-trusting.ts';

/** Undefined is what cannot be read, or is not set. */
export interface DoctorSettings {
  /** One sentence or two each: what is wrong, and what to do. */
  problems: readonly string[];
  dataDir: string;
  publicUrl: string | undefined;
  catalogueUrl: string | undefined;
  tokenUrl: string | undefined;
  serve: Readonly<ServeConfig> | undefined;
  account: Readonly<AccountConfig> | undefined;
  /** Null without `earshot.config.ts`. */
  inFile: DesiredSubscription[] | null | undefined;
  summary: Readonly<SummaryConfig> | undefined;
  /** Those of `earshot.config.ts`, by the subscription's name. */
  summaryRules: ReadonlyMap<string, SummaryRule> | undefined;
  /** The sound ones of `earshot.config.ts`. */
  sinks: LoadedSinks['definitions'] | undefined;
  /** The others, which are told with the checks of sinks. */
  faultySinks: LoadedSinks['faulty'];
  watch: Readonly<WatchConfig> | undefined;
  /** Trusts EARSHOT_PROBE_CA too; null without that variable. */
  probeWithExtra: ProbeEndpoint | null;
}

/** Never rejects for what a user has set. */
export async function readDoctorSettings(
  io: Pick<Io, 'env' | 'readFile' | 'workingDir'>,
): Promise<DoctorSettings> {
  const problems = new Set<string>();
  const attempt = async <Value>(read: () => Value | Promise<Value>) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      // With details, the message does no more than announce them.
      const texts = error.details.length === 0 ? [errorText(error)] : error.details;
      for (const text of texts) problems.add(text);
      return undefined;
    }
  };
  const serve = await attempt(() => readServeConfig(io));
  const account = await attempt(() => readAccountConfig(io));
  const inFile = await attempt(() => loadSubscriptionsFile(io.workingDir));
  const summary = await attempt(() => readSummaryConfig(io));
  const summaryRules = await attempt(() => loadSummaryRules(io.workingDir));
  const loaded = await attempt(() => loadEachSink(io.workingDir));
  const watch = await attempt(() => readWatchConfig(io));
  const isAsked = !areAllOff(summaryRules?.values() ?? []);
  if (isAsked && serve?.index === false) problems.add(rulesWithoutIndex);
  // What is wrong with these has been told by those above.
  const keys = ['dataDir', 'publicUrl', 'catalogueUrl', 'tokenUrl', 'probeCa'] as const;
  const { dataDir, publicUrl, catalogueUrl, tokenUrl, probeCa } = readVariables(io, keys).values;
  const probeWithExtra =
    (await attempt(() => (probeCa === undefined ? null : probeTrusting(probeCa, io)))) ?? null;
  const values = { dataDir, publicUrl, catalogueUrl, tokenUrl };
  const handOver = { sinks: loaded?.definitions, faultySinks: loaded?.faulty ?? [], watch };
  const read = { serve, account, inFile, summary, summaryRules, ...handOver, probeWithExtra };
  return { problems: [...problems], ...values, ...read };
}

/** What EARSHOT_SUMMARY asks for is judged where it is read. */
const rulesWithoutIndex = `${subscriptionsFileName} asks for summaries, which are made from the product index, but EARSHOT_INDEX is off. Set it to on, or take the rules out.`;

/** What to do about a problem that does not say so itself. */
function adviceFor(problem: string): string {
  return /^(subscriptions|sinks)\./.test(problem)
    ? `Fix it in ${subscriptionsFileName}.`
    : 'All variables: docs/configuration.md.';
}

/** A failure in the problem's own words: a line of the configuration's says first what is wrong, then what to do. */
export function problemFinding(check: string, problem: string): Finding {
  const [, message = problem, advice] = /^(.*?\.) (?=\S)(.*)$/s.exec(problem) ?? [];
  return { check, state: 'fail', message, advice: advice ?? adviceFor(problem) };
}

/** What is wrong with the variables and with `earshot.config.ts`, one finding each. */
export function checkConfiguration({ problems, inFile }: DoctorSettings): Finding[] {
  const check = 'configuration';
  if (problems.length > 0) return problems.map((problem) => problemFinding(check, problem));
  const count = inFile?.length ?? null;
  const file =
    count === null ? '' : ` ${subscriptionsFileName} names ${count} of them to register.`;
  return [{ check, state: 'pass', message: `The variables can be read.${file}` }];
}
