/** The questions of `earshot setup`: each is a flag of the command, and is repeated until the answer is valid. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { type VariableName, variables } from '../../config/variables.ts';
import { AppError, errorCodeOf, errorText } from '../../domain/app-error.ts';
import { clauseOf } from '../../domain/faults.ts';
import { defaultSubscriptionName } from '../../domain/subscription.ts';
import { readFilter } from '../filter-text.ts';
import type { Io } from '../io.ts';
import { readAreaFile } from '../product-flags.ts';
import { filterOfFlags, type SubscriptionFlags } from '../register-filter.ts';

/** Answers by variable, or by the flag of the subscription. An empty text is the answer "none". */
export type Answers = Record<string, string>;

/** Input and output, and the command whose flags are the questions. */
export interface AskContext {
  io: Io;
  command: Command;
}

type Read = (text: string, io: Io) => string;

export interface Question {
  /** Flag of the command. */
  flag: string;
  /** Text, if it is not the description of the flag. */
  ask?: string;
  /** Variable of the answer, or name of the flag. */
  name: VariableName | keyof SubscriptionFlags;
  /** Group of questions that may be unnecessary: of the public listener, or of the subscription. */
  part?: 'endpoint' | 'subscription';
  /** True if the flag names a file with the answer: it then sets the variable `…_FILE`. */
  inFile?: boolean;
  optional?: boolean;
  /** True if only a flag gives a first answer. */
  flagOnly?: boolean;
  when?: (answers: Answers) => boolean;
  /** Value of an empty answer. */
  fallback?: (answers: Answers) => string | undefined;
}

/** A question about a setting, whose flag only this command has. */
interface SettingQuestion extends Question {
  name: VariableName;
  usage: string;
  help: string;
  choices?: readonly string[];
  /** Parses an answer; by default by the schema of the variable. Throws commander's InvalidArgumentError. */
  read?: Read;
}

const attemptsMax = 5;

const hasAccount = (answers: Answers) => !answers.EARSHOT_ACCESS_TOKEN;

const usesTls = (kind: string) => (answers: Answers) => answers.EARSHOT_TLS === kind;

const endpoint = { part: 'endpoint' } as const;

const settingQuestions: readonly SettingQuestion[] = [
  {
    ...{ ...endpoint, flag: 'host', name: 'EARSHOT_PUBLIC_URL' },
    usage: '--host <name>',
    help: 'public host name, such as earshot.example.org, with :port if the port is not 443 (or use --pull)',
    read: (text) =>
      textFor('EARSHOT_PUBLIC_URL', text.includes('://') ? text : `https://${text}`, true),
  },
  {
    ...{ ...endpoint, flag: 'tls', name: 'EARSHOT_TLS', fallback: () => 'acme' },
    usage: '--tls <how>',
    help: 'HTTPS certificate: acme is automatic and needs ports 443 and 80, off is for a proxy (default: acme)',
    choices: ['acme', 'files', 'off'],
  },
  {
    ...{ ...endpoint, flag: 'cert', name: 'EARSHOT_TLS_CERT', when: usesTls('files') },
    usage: '--cert <file>',
    help: 'PEM file with certificate and chain (only with --tls files)',
    read: fileIn,
  },
  {
    ...{ ...endpoint, flag: 'key', name: 'EARSHOT_TLS_KEY', when: usesTls('files') },
    usage: '--key <file>',
    help: 'PEM file with the private key (only with --tls files)',
    read: fileIn,
  },
  {
    ...{ ...endpoint, flag: 'listen', name: 'EARSHOT_LISTEN', fallback: listenFallback },
    usage: '--listen <host:port>',
    help: 'address of the public listener (default: 0.0.0.0 with the port of --host)',
  },
  {
    ...{ ...endpoint, flag: 'trustedProxies', name: 'EARSHOT_TRUSTED_PROXIES' },
    ...{ when: usesTls('off'), fallback: () => '127.0.0.1' },
    usage: '--trusted-proxies <addresses>',
    help: 'addresses of trusted proxies (only with --tls off; default: 127.0.0.1)',
  },
  {
    ...{ ...endpoint, flag: 'email', name: 'EARSHOT_ACME_EMAIL' },
    ...{ when: usesTls('acme'), optional: true },
    usage: '--email <address>',
    help: 'contact address for the certificate authority (only with --tls acme)',
  },
  {
    ...{ ...endpoint, flag: 'agree', name: 'EARSHOT_ACME_AGREE', when: usesTls('acme') },
    usage: '--agree',
    help: "accept the authority's terms of service, of Let's Encrypt: https://letsencrypt.org/repository/ (only with --tls acme)",
    read: (text) => {
      if (isYes(text)) return 'yes';
      throw new InvalidArgumentError(
        'The authority issues no certificate without your agreement. Answer yes, or press Ctrl-C and use --tls files or --tls off.',
      );
    },
  },
  {
    ...{ flag: 'accountUsername', name: 'EARSHOT_ACCOUNT_USERNAME', when: hasAccount },
    usage: '--account-username <name>',
    help: 'user name of the catalogue account, of dataspace.copernicus.eu',
  },
  {
    ...{ flag: 'accountPasswordFile', name: 'EARSHOT_ACCOUNT_PASSWORD', when: hasAccount },
    usage: '--account-password-file <file>',
    help: 'file with the password of the catalogue account',
    inFile: true,
  },
  {
    ...{ flag: 'accountTotpFile', name: 'EARSHOT_ACCOUNT_TOTP', when: hasAccount },
    usage: '--account-totp-file <file>',
    help: 'file with the shared secret of the two-factor login',
    ...{ inFile: true, optional: true },
  },
];

/** Flags of the subscription that select products. */
const conditions = [
  ...(['collection', 'type', 'area', 'cloudBelow'] as const),
  ...(['platform', 'tile', 'name', 'bbox', 'filter'] as const),
];

const areaText = 'area: west,south,east,north in degrees, such as 5.5,45,11,48, or a GeoJSON file';

const aboutSubscription = (flag: keyof SubscriptionFlags) =>
  ({ flag, name: flag, part: 'subscription' }) as const;

/** Questions in their order. */
export const questions: readonly Question[] = [
  {
    ...{ flag: 'pull', name: 'pull', fallback: () => 'push' },
    ask: 'pull (earshot reads a queue) or push (the catalogue sends to a public host)',
  },
  ...settingQuestions,
  ...conditions.map((name, i) => ({
    ...aboutSubscription(name),
    ...(name === 'area' ? { ask: areaText } : {}),
    ...{ optional: true, flagOnly: i >= conditions.indexOf('platform') },
  })),
  { ...aboutSubscription('event'), fallback: () => 'created' },
  { ...aboutSubscription('subscription'), fallback: () => defaultSubscriptionName },
];

/** Adds the flags of the settings. */
export function addQuestionFlags(command: Command, io: Io): Command {
  return settingQuestions.reduce((all, { usage, help, choices, inFile, name, read }) => {
    const option = new Option(usage, help).preset('yes');
    if (choices !== undefined) return all.addOption(option.choices([...choices]));
    const parse = inFile ? fileIn : (read ?? ((text: string) => textFor(name, text)));
    return all.addOption(option.argParser((text) => parse(text, io)));
  }, command);
}

/** Returns the flag of a question. */
export function optionOf({ flag }: Pick<Question, 'flag'>, { command }: AskContext): Option {
  const option = command.options.find((one) => one.attributeName() === flag);
  if (option === undefined) throw new TypeError(`There is no flag ${flag}.`);
  return option;
}

/** Parses an answer as the flag. An area is also a box. Throws commander's InvalidArgumentError. */
function parsed({ flag }: Pick<Question, 'flag'>, text: string, context: AskContext): unknown {
  const isBox = flag === 'area' && /^[\s\d.+-]+(,[\s\d.+-]+){3}$/.test(text);
  const { parseArg } = optionOf({ flag: isBox ? 'bbox' : flag }, context);
  if (flag === 'area' && !isBox) readAreaFile(text, context.io);
  return parseArg === undefined ? text : parseArg(text, undefined);
}

/** Returns an io that prints nothing on stderr, and the text that was not printed. */
export function silenced(io: Io): { io: Io; text: () => string } {
  let text = '';
  const write = (chunk: string | Uint8Array) => {
    text += chunk;
    return true;
  };
  return { io: { ...io, stderr: { ...io.stderr, write } }, text: () => text };
}

/** Returns the flags of products that an answer describes. */
function conditionOf(question: Question, text: string, context: AskContext): SubscriptionFlags {
  const value = parsed(question, text, context);
  return {
    [question.name === 'area' && typeof value === 'object' ? 'bbox' : question.name]: value,
  };
}

/** Returns the flags of the subscription that the answers describe; the filter is one text. Throws `usage`. */
export function subscriptionOf(answers: Answers, context: AskContext): SubscriptionFlags {
  const { event, subscription: name } = answers;
  const given = questions.filter((one) => conditions.some((flag) => flag === one.name));
  const flags = given.map((one) => {
    const text = answers[one.name];
    return text || (one.name === 'filter' && text === '') ? conditionOf(one, text, context) : {};
  });
  const filter = filterOfFlags(Object.assign({}, ...flags), silenced(context.io).io);
  return {
    ...(event && { event: parsed({ flag: 'event' }, event, context) as never }),
    ...(name && { subscription: name }),
    ...(filter === undefined ? {} : { filter }),
  };
}

/** True if answers or flags select products; an empty filter selects all of them. */
export function isChosen(texts: Answers): boolean {
  return texts.filter !== undefined || conditions.some((name) => texts[name]);
}

/** Replaces answers by flags, and prints warnings about them. Throws `usage` for flags that exclude each other. */
export function takeFlags(texts: Answers, answers: Answers, context: AskContext): void {
  const publicFlag = questions.find(({ flag, part }) => part === 'endpoint' && texts[flag]);
  if (texts.pull && publicFlag !== undefined) {
    const { long } = optionOf(publicFlag, context);
    throw new AppError('usage', `${long} is for push, and excludes --pull.`);
  }
  for (const question of questions) {
    const { flag, name, inFile } = question;
    const text = texts[flag];
    if (text === undefined) continue;
    const isParsed = name.startsWith('EARSHOT_') && text !== 'yes';
    const value = isParsed ? String(context.command.getOptionValue(flag)) : text;
    answers[inFile ? `${name}_FILE` : name] = value;
    delete answers[inFile ? name : `${name}_FILE`];
    context.io.stderr.write(warningsOf(question, text, context));
  }
  const isPush = texts.push ?? (texts.pull === undefined && answers.EARSHOT_PUBLIC_URL);
  if (texts.pull) answers.pull = 'pull';
  else if (isPush) answers.pull = 'push';
}

/** Returns the warnings about an answer that selects products. */
function warningsOf(question: Question, text: string, context: AskContext): string {
  const { name } = question;
  if (name === 'filter' || !conditions.some((one) => one === name)) return '';
  const { io, text: warnings } = silenced(context.io);
  readFilter(filterOfFlags(conditionOf(question, text, context), io) ?? '', 'Products', io);
  return warnings();
}

/** Parses an answer. Throws commander's InvalidArgumentError. */
function readAnswer(question: Question, text: string, context: AskContext): string {
  const { name, part, inFile } = question;
  if (inFile) return textFor(name as VariableName, text);
  if (name === 'pull') {
    if (/^(pull|push)$/i.test(text)) return text.toLowerCase();
    throw new InvalidArgumentError('Answer pull or push.');
  }
  const value = parsed(question, text, context);
  return part === 'subscription' ? text : String(value);
}

/** Returns the description of the flag as a question. */
function questionText(question: Question, context: AskContext): string {
  const { inFile, optional, part, ask = optionOf(question, context).description } = question;
  const plain = ask.replace(/ \((only|default|or use).*?\)|; default: [^)]*/, '');
  const text = inFile ? `${plain.replace('file with the ', '')} (not shown)` : plain;
  const empty = part === 'subscription' ? ' (empty: any)' : ' (empty: none)';
  return `${text[0]?.toUpperCase()}${text.slice(1)}${optional ? empty : ''}`;
}

/**
 * Asks a question, with the current answer as default, and stores the answer. After an answer with warnings, asks again
 * with that answer as default. Without a terminal, the default is the answer, or the answer is `missing`.
 */
export async function askQuestion(
  question: Question,
  answers: Answers,
  context: AskContext,
  suspicious?: string,
): Promise<'answered' | 'default' | 'missing'> {
  const { name, inFile: hidden = false, optional = false } = question;
  const { io } = context;
  const stored = answers[name] || answers[`${name}_FILE`];
  const present = suspicious ?? stored;
  const initial = present ?? question.fallback?.(answers) ?? (optional ? '' : undefined);
  const shown = hidden ? present && 'keep the current one' : initial;
  const none = optional && present ? '; - for none' : '';
  const prompt = `${questionText(question, context)}${shown ? ` [${shown}${none}]` : ''}`;
  const text = await askUntil(io, prompt, {
    hidden,
    read: (answer) => {
      if (answer === '-' && none !== '') return '';
      if (answer !== '') return readAnswer(question, answer, context);
      if (initial !== undefined) return undefined;
      throw new InvalidArgumentError('An answer is required.');
    },
  });
  const warnings = text ? warningsOf(question, text, context) : '';
  if (text && warnings !== '') {
    io.stderr.write(warnings);
    return askQuestion(question, answers, context, text);
  }
  const value = text ?? suspicious ?? (stored ? undefined : initial);
  if (value !== undefined) {
    answers[name] = value;
    delete answers[`${name}_FILE`];
  }
  if (text !== null) return 'answered';
  return initial === undefined ? 'missing' : 'default';
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
      if (!isInvalid) throw error;
      io.stderr.write(`  ${errorText(error)}\n`);
      if (attempts < attemptsMax) continue;
      throw new AppError('usage', `Stopped after ${attemptsMax} invalid answers.`);
    }
  }
}

/** True for y and yes. */
export function isYes(text: string): boolean {
  return /^y(es)?$/i.test(text);
}

/** Returns the text if it is valid for the variable; with `normalised`, the parsed value instead. */
function textFor(name: VariableName, text: string, normalised = false): string {
  const result = variables[name].schema.safeParse(text);
  if (result.success) return normalised ? String(result.data) : text;
  const messages = result.error.issues.map(({ message }) => message);
  throw new InvalidArgumentError(`Invalid value: ${messages.join('; ')}.`);
}

/** Returns the path of a file that can be read. */
function fileIn(text: string, { workingDir, readFile }: Io): string {
  const path = resolve(workingDir, text);
  try {
    readFile(path);
    return path;
  } catch (error) {
    throw new InvalidArgumentError(`${path} cannot be read: ${clauseOf(errorCodeOf(error))}.`);
  }
}

function listenFallback({ EARSHOT_TLS, EARSHOT_PUBLIC_URL = '' }: Answers): string {
  if (EARSHOT_TLS === 'off') return '127.0.0.1:8081';
  return `0.0.0.0:${URL.parse(EARSHOT_PUBLIC_URL)?.port || '443'}`;
}

export interface SetupFlags extends SubscriptionFlags {
  /** Texts of all flags, as given. */
  texts: Answers;
  sandbox?: true;
  dir?: string;
  odata?: true;
  dryRun?: true;
  force?: true;
  yes?: true;
  stay: boolean;
}
