/** Parses the flags of `earshot sandbox` and converts them to sandbox options. */
import { InvalidArgumentError } from 'commander';
import { loadSections, type Reader } from '../config/load.ts';
import { AppError } from '../domain/app-error.ts';
import {
  demoFaults,
  type Faults,
  faultsSchema,
  noFaults,
  realisticFaults,
} from '../sandbox/delivery/faults.ts';
import type { SandboxOptions } from '../sandbox/sandbox-options.ts';
import { lengthOfTimeUs } from './flags.ts';
import type { Io } from './io.ts';

/** Default name and password of the account. */
export const accountDefault = 'sandbox';

export const faultMixes = { none: noFaults, realistic: realisticFaults, demo: demoFaults };

export interface SandboxFlags {
  endpoint?: string;
  trust?: string;
  records?: string;
  products?: number;
  rate: number;
  seed: number;
  modifiedShare: number;
  secondModifiedShare: number;
  deletedShare: number;
  lateShare: number;
  lateMax: number;
  past?: number;
  pastRate: number;
  faults: keyof typeof faultMixes;
  fault?: Partial<Faults>;
  control: string;
  service: string;
  inference: string;
  allowRemote?: true;
  allowRemoteControl?: true;
  allowHttp?: true;
}

/** Returns the sandbox options, with the account from the environment. Throws AppError for an unreadable file or variable. */
export function sandboxOptions(io: Io, flags: SandboxFlags): SandboxOptions {
  const { endpoint, records, products, rate, seed, modifiedShare, deletedShare } = flags;
  const { secondModifiedShare, lateShare, lateMax: lateMaxMs, past: durationMs } = flags;
  return {
    ...accountOptions(io),
    ...(endpoint === undefined ? {} : { endpoint, ...endpointCredentials(io) }),
    seed,
    modifiedShare,
    secondModifiedShare,
    deletedShare,
    lateShare,
    lateMaxMs,
    ...(durationMs === undefined ? {} : { past: { durationMs, productsPerDay: flags.pastRate } }),
    ratePerSecond: rate,
    faults: { ...faultMixes[flags.faults], ...flags.fault },
    controlListen: flags.control,
    serviceListen: flags.service,
    inferenceListen: flags.inference,
    allowRemote: flags.allowRemote === true,
    allowRemoteControl: flags.allowRemoteControl === true,
    allowPlainHttp: flags.allowHttp === true,
    trustedCaPems: flags.trust === undefined ? [] : [readTrust(io, flags.trust)],
    now: () => io.nowUs() / 1000,
    ...(products === undefined ? {} : { count: products }),
    ...(records === undefined ? {} : { recordsFile: records }),
  };
}

function accountOptions(io: Io): Pick<SandboxOptions, 'account' | 'service'> {
  const { account, totp } = loadSections(io, {
    account: ({ value }: Reader) => ({
      username: value('EARSHOT_ACCOUNT_USERNAME') ?? accountDefault,
      password: value('EARSHOT_ACCOUNT_PASSWORD') ?? accountDefault,
    }),
    totp: ({ value }: Reader) => value('EARSHOT_ACCOUNT_TOTP'),
  });
  return {
    account,
    // Six digits are a one-time code, not a shared secret: later codes cannot be checked with it.
    ...(totp === undefined || /^\d{6}$/.test(totp) ? {} : { service: { totpSecret: totp } }),
  };
}

function endpointCredentials(io: Io): { username: string; password: string } {
  const { username, password } = loadSections(io, {
    username: ({ value }: Reader) => value('EARSHOT_ENDPOINT_USERNAME'),
    password: ({ value }: Reader) => value('EARSHOT_ENDPOINT_PASSWORD'),
  });
  if (username === undefined || password === undefined) {
    throw new AppError('configuration', 'The endpoint needs credentials.', {
      advice:
        'Set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD to the credentials of the receiver, or omit --endpoint and run earshot register.',
    });
  }
  return { username, password };
}

function readTrust(io: Io, file: string): string {
  try {
    return io.readFile(file);
  } catch (cause) {
    throw new AppError('usage', `--trust: ${file} cannot be read.`, { cause });
  }
}

/** Parses a number from 0 to 1. */
export function readShare(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) {
    throw new InvalidArgumentError('Use a number from 0 to 1.');
  }
  return value;
}

/** Parses a duration. Returns ms. */
export function readDuration(text: string): number {
  const ms = Math.round((lengthOfTimeUs(text) ?? 0) / 1000);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('Use a duration such as 90s, 10m, 3h or 10d.');
}

/** Adds one `name=rate` to the previous faults. */
export function addFault(text: string, previous?: Partial<Faults>): Partial<Faults> {
  const [name = '', rate = '', ...rest] = text.split('=');
  if (rest.length > 0) throw new InvalidArgumentError('Use name=rate, such as lost=0.1.');
  if (!Object.hasOwn(faultsSchema.shape, name)) {
    throw new InvalidArgumentError(`Known faults: ${Object.keys(noFaults).join(', ')}.`);
  }
  return { ...previous, [name]: readShare(rate) };
}
