/** The questions of `earshot setup`: each has a flag and a variable, and is repeated until the answer is valid. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type VariableName, variables } from '../../config/variables.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { Io } from '../io.ts';
import { type ConditionFlags, readAreaFile } from '../product-flags.ts';
import { conditionFlagsOf, type SubscriptionFlags } from '../register-filter.ts';

type Settings = Record<string, string>;

interface Question {
  /** Flag, and its line in the help. */
  usage: string;
  help: string;
  choices?: readonly string[];
  ask: string;
  variable: VariableName;
  /** True if the flag names a file with the answer: it then sets the variable `…_FILE`. */
  inFile?: boolean;
  optional?: boolean;
  /** True for settings of the public listener, which pull subscriptions do not need. */
  ofEndpoint?: boolean;
  when?: (settings: Settings) => boolean;
  /** Value of an empty answer. */
  fallback?: (settings: Settings) => string | undefined;
  /** Parses an answer; by default by the schema of the variable. Throws commander's InvalidArgumentError. */
  read?: (text: string, workingDir: string) => string;
}

const attemptsMax = 5;

const hasAccount = (settings: Settings) => settings.EARSHOT_ACCESS_TOKEN === undefined;

const usesTls = (kind: string) => (settings: Settings) => settings.EARSHOT_TLS === kind;

/** Questions in their order. */
const questions: readonly Question[] = [
  {
    usage: '--host <name>',
    help: 'public host name, with :port if the port is not 443',
    ask: 'Public host name, for example earshot.example.org (add :port unless it is 443; without a public host, use --pull)',
    variable: 'EARSHOT_PUBLIC_URL',
    ofEndpoint: true,
    read: (text) =>
      textFor('EARSHOT_PUBLIC_URL', text.includes('://') ? text : `https://${text}`, true),
  },
  {
    usage: '--tls <how>',
    help: 'source of the HTTPS certificate (default: acme)',
    choices: ['acme', 'files', 'off'],
    ask: 'HTTPS certificate: acme (automatic; needs ports 443 and 80), files, or off (behind a proxy)',
    variable: 'EARSHOT_TLS',
    ofEndpoint: true,
    fallback: () => 'acme',
  },
  {
    usage: '--cert <file>',
    help: 'file with certificate and chain (only with --tls files)',
    ask: 'File with the certificate and its chain (PEM)',
    variable: 'EARSHOT_TLS_CERT',
    ofEndpoint: true,
    when: usesTls('files'),
    read: pathIn,
  },
  {
    usage: '--key <file>',
    help: 'file with the private key (only with --tls files)',
    ask: 'File with the private key of the certificate (PEM)',
    variable: 'EARSHOT_TLS_KEY',
    ofEndpoint: true,
    when: usesTls('files'),
    read: pathIn,
  },
  {
    usage: '--listen <host:port>',
    help: 'address of the public listener (default: 0.0.0.0 with the port of --host)',
    ask: 'Address and port of the public listener',
    variable: 'EARSHOT_LISTEN',
    ofEndpoint: true,
    fallback: listenFallback,
  },
  {
    usage: '--trusted-proxies <addresses>',
    help: 'addresses of trusted proxies (only with --tls off; default: 127.0.0.1)',
    ask: 'Addresses of the proxy',
    variable: 'EARSHOT_TRUSTED_PROXIES',
    ofEndpoint: true,
    when: usesTls('off'),
    fallback: () => '127.0.0.1',
  },
  {
    usage: '--email <address>',
    help: 'contact address for the certificate authority (only with --tls acme)',
    ask: 'Contact email address for the certificate authority (empty: none)',
    variable: 'EARSHOT_ACME_EMAIL',
    ofEndpoint: true,
    optional: true,
    when: usesTls('acme'),
  },
  {
    usage: '--agree',
    help: "accept the authority's terms of service (only with --tls acme)",
    ask: "Do you agree to the authority's terms of service (Let's Encrypt: https://letsencrypt.org/repository/)? (y/n)",
    variable: 'EARSHOT_ACME_AGREE',
    ofEndpoint: true,
    when: usesTls('acme'),
    read: (text) => {
      if (isYes(text)) return 'yes';
      throw new InvalidArgumentError(
        'The authority issues no certificate without your agreement. Answer y, or press Ctrl-C and use --tls files or --tls off.',
      );
    },
  },
  {
    usage: '--account-username <name>',
    help: 'user name of the catalogue account',
    ask: 'User name of your catalogue account (dataspace.copernicus.eu)',
    variable: 'EARSHOT_ACCOUNT_USERNAME',
    when: hasAccount,
  },
  {
    usage: '--account-password-file <file>',
    help: 'file with the password of the catalogue account',
    ask: 'Password of the account (not shown)',
    variable: 'EARSHOT_ACCOUNT_PASSWORD',
    inFile: true,
    when: hasAccount,
  },
  {
    usage: '--account-totp-file <file>',
    help: 'file with the shared secret of the two-factor login',
    ask: 'Shared secret of your authenticator app, for two-factor login (not shown; empty: none)',
    variable: 'EARSHOT_ACCOUNT_TOTP',
    inFile: true,
    optional: true,
    when: hasAccount,
  },
];

/** Adds the flag of each question. */
export function addQuestionFlags(command: Command): Command {
  return questions.reduce((all, { usage, help, choices }) => {
    const option = new Option(usage, help);
    return all.addOption(choices === undefined ? option : option.choices([...choices]));
  }, command);
}

/**
 * Fills `settings` from flags, existing values and answers. With `yes`, asks only for missing values. Without a
 * terminal, returns the missing flags, one line each.
 */
export async function askSettings(
  io: Io,
  flags: SetupFlags,
  settings: Settings,
): Promise<string[]> {
  const missing: string[] = [];
  for (const question of questions) {
    if (question.when?.(settings) === false || (flags.pull && question.ofEndpoint)) continue;
    const name = question.variable;
    if (applyFlag(question, flags, settings, io.workingDir)) continue;
    const present = settings[name] ?? settings[`${name}_FILE`];
    const fallback = present ?? question.fallback?.(settings);
    const isKnown = fallback !== undefined || question.optional === true;
    const answer = flags.yes && isKnown ? undefined : await askOne(io, question, present, fallback);
    if (answer === null && !isKnown) missing.push(`${question.usage}  ${question.ask}`);
    const value = answer ?? (present === undefined ? fallback : undefined);
    if (value === undefined) continue;
    settings[name] = value;
    delete settings[`${name}_FILE`];
  }
  if (settings.EARSHOT_TLS !== 'files') {
    delete settings.EARSHOT_TLS_CERT;
    delete settings.EARSHOT_TLS_KEY;
  }
  return missing;
}

/** Returns true if a flag answers the question. The text of a flag is checked like an answer. */
function applyFlag(
  { usage, variable: name, inFile, read = readerOf(name) }: Question,
  flags: SetupFlags,
  settings: Settings,
  workingDir: string,
): boolean {
  const text = flags[new Option(usage).attributeName() as keyof SetupFlags];
  if (text === undefined) return false;
  if (inFile) {
    settings[`${name}_FILE`] = resolve(workingDir, String(text));
    delete settings[name];
    return true;
  }
  try {
    settings[name] = read(text === true ? 'yes' : String(text), workingDir);
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new AppError('usage', `${usage}: ${error.message}`);
  }
  return true;
}

/** Returns null without a terminal; undefined for an empty answer that is permitted. */
function askOne(
  io: Pick<Io, 'ask' | 'stderr' | 'workingDir'>,
  { ask, variable, inFile: hidden = false, optional = false, read = readerOf(variable) }: Question,
  present: string | undefined,
  fallback: string | undefined,
): Promise<string | null | undefined> {
  const shown = hidden ? present && 'keep the current one' : fallback;
  return askUntil(io, shown === undefined ? ask : `${ask} [${shown}]`, {
    hidden,
    read: (text) => {
      if (text !== '') return read(text, io.workingDir);
      if (fallback !== undefined || optional) return undefined;
      throw new InvalidArgumentError('An answer is required.');
    },
  });
}

/** Asks until `read` accepts the answer, and prints the reason of each rejection. Null without a terminal. */
export async function askUntil<Value>(
  io: Pick<Io, 'ask' | 'stderr'>,
  question: string,
  { hidden = false, read }: { hidden?: boolean; read: (text: string) => Value },
): Promise<Value | null> {
  for (let attempts = 1; ; attempts += 1) {
    const text = await io.ask(`${question}: `, { hidden });
    if (text === null) return null;
    try {
      return read(text.trim());
    } catch (error) {
      const isInvalid = error instanceof InvalidArgumentError || error instanceof AppError;
      if (!isInvalid || attempts === attemptsMax) throw error;
      io.stderr.write(`  ${errorText(error)}\n`);
    }
  }
}

/** True for y and yes. */
export function isYes(text: string): boolean {
  return /^y(es)?$/i.test(text);
}

/** Returns the text if it is valid for the variable; with `normalised`, the parsed value instead. */
function textFor(name: VariableName, text: string, normalised = false): string {
  const parsed = variables[name].schema.safeParse(text);
  if (parsed.success) return normalised ? String(parsed.data) : text;
  const messages = parsed.error.issues.map((issue) =>
    issue.code === 'invalid_value' ? `use ${issue.values.join(', ')}` : issue.message,
  );
  throw new InvalidArgumentError(`Invalid value: ${messages.join('; ')}.`);
}

/** Creates a parser that accepts the values of a variable. */
const readerOf = (name: VariableName) => (text: string) => textFor(name, text);

function pathIn(text: string, workingDir: string): string {
  return resolve(workingDir, text);
}

function listenFallback({ EARSHOT_TLS, EARSHOT_PUBLIC_URL = '' }: Settings): string {
  if (EARSHOT_TLS === 'off') return '127.0.0.1:8081';
  return `0.0.0.0:${URL.parse(EARSHOT_PUBLIC_URL)?.port || '443'}`;
}

export interface SetupFlags extends SubscriptionFlags {
  host?: string;
  tls?: string;
  cert?: string;
  key?: string;
  listen?: string;
  trustedProxies?: string;
  email?: string;
  agree?: true;
  accountUsername?: string;
  accountPasswordFile?: string;
  accountTotpFile?: string;
  sandbox?: true;
  dir?: string;
  dryRun?: true;
  force?: true;
  yes?: true;
  stay: boolean;
}

/** Parses a text like the flag of that name. Throws commander's InvalidArgumentError. */
export type ReadFlag = (flag: keyof ConditionFlags | 'subscription', text: string) => unknown;

const boxPattern = /^[\s\d.+-]+(,[\s\d.+-]+){3}$/;

/**
 * Asks for the filter and the name of the subscription, and fills `flags`. Without a terminal, returns the missing
 * flags, one line each.
 */
export async function askFilter(
  io: Pick<Io, 'ask' | 'stderr' | 'readFile'>,
  flags: SetupFlags,
  readFlag: ReadFlag,
): Promise<string[]> {
  const ask = async (flag: 'collection' | 'type' | 'cloudBelow' | 'subscription', text: string) => {
    const read = (answer: string) => (answer === '' ? undefined : readFlag(flag, answer));
    const value = await askUntil(io, text, { read });
    if (value !== null && value !== undefined) Object.assign(flags, { [flag]: value });
    return value;
  };
  for (;;) {
    const collection = await ask(
      'collection',
      'Collections of the products, for example SENTINEL-2 or S1,S3 (empty: all)',
    );
    if (collection === null) {
      return ['--collection <names>  collections (or another filter flag, or --filter)'];
    }
    await ask('type', 'Product types, for example S2MSI2A (empty: all)');
    await askArea(io, flags, readFlag);
    await ask('cloudBelow', 'Maximum cloud cover in percent (empty: any)');
    if (isChosen(flags)) break;
    const every = await askUntil(io, everyProduct, { read: isYes });
    if (every) {
      flags.filter = '';
      break;
    }
  }
  await ask('subscription', 'Name of the subscription [default]');
  return [];
}

const everyProduct =
  'This selects every product of the catalogue, tens of thousands a day. Continue? (y/n)';

/** True if the flags select products, even all of them. */
export function isChosen(flags: SetupFlags): boolean {
  return Object.keys(conditionFlagsOf(flags)).length > 0;
}

async function askArea(
  io: Pick<Io, 'ask' | 'stderr' | 'readFile'>,
  flags: SetupFlags,
  readFlag: ReadFlag,
): Promise<void> {
  await askUntil(
    io,
    'Area: west,south,east,north, for example 5.5,45,11,48, or a GeoJSON file (empty: worldwide)',
    {
      read: (text) => {
        if (text === '') return;
        if (boxPattern.test(text)) {
          Object.assign(flags, { bbox: readFlag('bbox', text) });
          return;
        }
        readAreaFile(text, io);
        flags.area = text;
      },
    },
  );
}
