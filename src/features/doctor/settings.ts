/** Reads the settings of the doctor, and collects their problems. */

import { probeTrusting } from '../../admin/open-account.ts';
import { accountSections, needsEndpoint } from '../../admin/settings.ts';
import type { Io } from '../../core/cli/io.ts';
import { checkConfig, loadConfig, loadServed } from '../../core/config/config.ts';
import { problemsOf } from '../../core/config/load.ts';
import {
  loadSubscriptionsFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import {
  checkConsolePassword,
  type DoctorSettings,
  fixInFile,
  type SettingsReader,
  settingFinding,
} from '../../core/doctor/steps.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { type Finding, finding } from '../../core/terms/evaluation.ts';
import { counted } from '../../core/terms/text.ts';

interface SettingsProblem {
  message: string;
  advice: string;
}

/** Next step for problems without their own. */
const inVariables = 'All variables: docs/reference/configuration.md.';

/** Returns a reader, and the problems that it has found up to now. */
export function createSettingsReader(): SettingsReader & { problems(): SettingsProblem[] } {
  const problems = new Map<string, SettingsProblem>();
  const report = (message: string, advice: string) =>
    void problems.set(message, { message, advice });
  return {
    report,
    problems: () => [...problems.values()],
    attempt: async (read, nextStep = inVariables) => {
      try {
        return await read();
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        for (const { message, advice = nextStep } of problemsOf(error)) report(message, advice);
        return undefined;
      }
    },
  };
}

export type OwnSettings = Awaited<ReturnType<typeof readDoctorSettings>>;

/** Reads all settings that are not of a feature. Never rejects because of invalid settings. */
export async function readDoctorSettings(
  io: Io,
  { attempt, problems }: ReturnType<typeof createSettingsReader>,
) {
  const hasEndpoint = needsEndpoint(io);
  // Their problems are reported by the other sections.
  const own = ['dataDir', 'publicUrl', 'catalogueUrl', 'tokenUrl', 'probeCa'] as const;
  const { dataDir = '', publicUrl, catalogueUrl, tokenUrl, probeCa } = checkConfig(io, own).config;
  const settings: DoctorSettings = {
    ...{ hasEndpoint, dataDir, publicUrl },
    serve: await attempt(() => loadServed(io, hasEndpoint)),
    account: await attempt(() => loadConfig(io, accountSections)),
    inFile: await attempt(() => loadSubscriptionsFile(io), fixInFile),
  };
  // Also trusts EARSHOT_PROBE_CA; null without that variable.
  const probeWithExtra =
    (await attempt(() => (probeCa === undefined ? null : probeTrusting(probeCa, io)))) ?? null;
  return { ...settings, catalogueUrl, tokenUrl, probeWithExtra, problems };
}

/** Returns one finding for each problem of the variables and of `earshot.config.ts`. */
export function checkConfiguration({ problems, inFile, serve }: OwnSettings): Finding[] {
  const check = 'configuration';
  const found = problems();
  if (found.length > 0)
    return found.map(({ message, advice }) => settingFinding(check, message, advice));
  const count = inFile?.length ?? null;
  const file =
    count === null ? '' : ` ${subscriptionsFileName} defines ${counted(count, 'subscription')}.`;
  const warnings = checkConsolePassword(serve?.console?.password);
  return [finding(check, 'ok', `The variables are valid.${file}`), ...warnings];
}
