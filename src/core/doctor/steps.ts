/** Steps of `earshot doctor`, and the contribution of a feature to them. */

import type { AccountConfig } from '../../admin/settings.ts';
import type { Io } from '../cli/io.ts';
import type { ServeConfig } from '../config/config.ts';
import { subscriptionsFileName } from '../config/subscriptions-file.ts';
import { type Check, type Finding, finding } from '../terms/finding.ts';
import type { DesiredSubscription } from '../terms/subscription.ts';

export interface Step {
  /** Usual name of its findings; other steps refer to it. */
  name: string;
  /** Steps that must have succeeded: none of their findings is critical or unknown. */
  needs: readonly string[];
  run: Check;
}

/** Settings of the doctor. Undefined: not set, or not readable. */
export interface DoctorSettings {
  /** False if all subscriptions are pull. */
  hasEndpoint: boolean;
  dataDir: string;
  publicUrl: string | undefined;
  serve: ServeConfig | undefined;
  account: AccountConfig | undefined;
  /** Subscriptions of `earshot.config.ts`; null without the file. */
  inFile: readonly DesiredSubscription[] | null | undefined;
}

/** Reads settings. A problem becomes a finding of the configuration. */
export interface SettingsReader {
  /** Returns undefined after a `configuration` error. */
  attempt<Value>(read: () => Value | Promise<Value>, nextStep?: string): Promise<Value | undefined>;
  report(message: string, nextStep: string): void;
}

export interface DoctorSlot {
  /** Reads the settings of the feature, and returns its steps. Rejects only for bugs. */
  stepsOf(settings: DoctorSettings, io: Io, reader: SettingsReader): Promise<Step[]>;
}

/** Makes a step for a setting that could not be read depend on the configuration, which failed. */
export const needsOf = (setting: unknown) => (setting === undefined ? ['configuration'] : []);

export const fixInFile = `Fix it in ${subscriptionsFileName}.`;

/** Returns a finding about a setting that must be corrected. */
export function settingFinding(check: string, text: string, nextStep = fixInFile): Finding {
  const [first = '', ...position] = text.split('\n');
  const found = finding(check, 'critical', first, nextStep, ...position);
  return { ...found, code: 'configuration' };
}
