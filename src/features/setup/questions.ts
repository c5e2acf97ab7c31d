/** The questions of `earshot setup`, as one table: of variables, and of flags of the subscription. */
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, type Option } from 'commander';
import type { Io } from '../../core/cli/io.ts';
import { AppError, errorCodeOf, errorText } from '../../core/terms/app-error.ts';
import { clauseOf } from '../../core/terms/faults.ts';
import { defaultSubscriptionName } from '../../core/terms/subscription.ts';
import { readAreaFile } from '../products/flags.ts';
import { filterOfFlags, type SubscriptionFlags } from '../subscriptions/register-filter.ts';

/** Answers by variable, or by the flag of the subscription. An empty text is the answer "none". */
export type Answers = Record<string, string>;

/** Input and output, and the command with the flags of the subscription. */
export interface AskContext {
  io: Io;
  command: Command;
}

export interface Question {
  /** Variable of the answer, or flag of the subscription. */
  name: `EARSHOT_${string}` | keyof SubscriptionFlags;
  /** Text of the question; by default the description of the flag. */
  text?: string;
  /** Group of questions that may be unnecessary. */
  part?: 'endpoint' | 'subscription';
  choices?: readonly string[];
  /** True if the answer is typed without echo. */
  isSecret?: true;
  optional?: true;
  /** True if only a flag gives an answer. */
  flagOnly?: true;
  when?: (answers: Answers) => boolean;
  /** Value of an empty answer. */
  fallback?: (answers: Answers) => string;
  /** Converts an answer, and throws commander's InvalidArgumentError; by default a variable's schema or the flag. */
  check?: (text: string, io: Io) => string;
}

export const isSetting = (name: string) => name.startsWith('EARSHOT_');

const hasAccount = (answers: Answers) => !answers.EARSHOT_ACCESS_TOKEN;

const usesTls = (kind: string) => (answers: Answers) => answers.EARSHOT_TLS === kind;

const endpoint = { part: 'endpoint' } as const;

const secret = { isSecret: true, when: hasAccount } as const;

const subscription = { part: 'subscription' } as const;

const condition = { ...subscription, optional: true } as const;

const rare = { ...condition, flagOnly: true } as const;

/** Questions in their order. */
export const questions: readonly Question[] = [
  {
    ...{ name: 'pull', fallback: () => 'push', check: pullOrPush },
    text: 'pull (earshot reads a queue) or push (the catalogue sends to a public host)',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_PUBLIC_URL', check: publicUrl },
    text: 'public host name, such as earshot.example.org, with :port if the port is not 443',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_TLS', fallback: () => 'acme' },
    choices: ['acme', 'files', 'off'],
    text: 'HTTPS certificate: acme (automatic, needs ports 443 and 80), files, or off (behind a proxy)',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_TLS_CERT', when: usesTls('files'), check: fileIn },
    text: 'PEM file with certificate and chain',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_TLS_KEY', when: usesTls('files'), check: fileIn },
    text: 'PEM file with the private key',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_LISTEN', fallback: listenOf },
    text: 'address of the public listener',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_TRUSTED_PROXIES', when: usesTls('off') },
    ...{ fallback: () => '127.0.0.1', text: 'addresses of trusted proxies' },
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_ACME_EMAIL', when: usesTls('acme'), optional: true },
    text: 'contact address for the certificate authority',
  },
  {
    ...{ ...endpoint, name: 'EARSHOT_ACME_AGREE', when: usesTls('acme'), check: agreement },
    text: "yes to accept the authority's terms of service, of Let's Encrypt: https://letsencrypt.org/repository/",
  },
  {
    ...{ name: 'EARSHOT_ACCOUNT_USERNAME', when: hasAccount },
    text: 'user name of the catalogue account, of dataspace.copernicus.eu',
  },
  {
    ...{ ...secret, name: 'EARSHOT_ACCOUNT_PASSWORD' },
    text: 'password of the catalogue account',
  },
  {
    ...{ ...secret, name: 'EARSHOT_ACCOUNT_TOTP', optional: true },
    text: 'shared secret of the two-factor login',
  },
  { ...condition, name: 'collection' },
  { ...condition, name: 'type' },
  {
    ...{ ...condition, name: 'area' },
    text: 'area: west,south,east,north in degrees, such as 5.5,45,11,48, or a GeoJSON file',
  },
  { ...condition, name: 'cloudBelow' },
  ...(['platform', 'tile', 'name', 'bbox', 'filter'] as const).map((name) => ({ ...rare, name })),
  { ...subscription, name: 'event', fallback: () => 'created' },
  { ...subscription, name: 'subscription', fallback: () => defaultSubscriptionName },
];

const conditions = questions.filter(({ part, optional }) => part === 'subscription' && optional);

/** Returns the flag of a question about the subscription. */
function flagOf({ name }: Pick<Question, 'name'>, { command }: AskContext): Option {
  const option = command.options.find((one) => one.attributeName() === name);
  if (option === undefined) throw new TypeError(`There is no flag ${name}.`);
  return option;
}

/** Returns the variable or the flag of a question, with its text. */
export function usageOf(question: Question, context: AskContext): string {
  const { name, text } = question;
  if (isSetting(name)) return `${name}  ${text}`;
  const { flags, description } = flagOf(question, context);
  return `${flags}  ${description}`;
}

/** Returns the parsed flag of a condition; an area can be a box. Throws commander's InvalidArgumentError. */
function parsedFlag(question: Question, text: string, context: AskContext): SubscriptionFlags {
  const isBox = question.name === 'area' && /^[\s\d.+-]+(,[\s\d.+-]+){3}$/.test(text);
  const name = isBox ? 'bbox' : question.name;
  if (name === 'area') readAreaFile(text, context.io);
  const { parseArg } = flagOf({ name }, context);
  return { [name]: parseArg === undefined ? text : parseArg(text, undefined) };
}

/** Returns the subscription that the answers describe. Prints warnings about its filter. Throws `usage`. */
export function subscriptionOf(answers: Answers, context: AskContext) {
  const given = questions.filter(
    ({ name, part }) => part === 'subscription' && (answers[name] || name === 'filter'),
  );
  const flags: SubscriptionFlags = Object.assign(
    {},
    ...given.map((one) => {
      const text = answers[one.name];
      return text === undefined ? {} : parsedFlag(one, text, context);
    }),
  );
  const { event, subscription } = flags;
  const filter = filterOfFlags(flags, context.io);
  return {
    ...(event && { event }),
    ...(subscription && { subscription }),
    ...(filter !== undefined && { filter }),
  };
}

/** True if answers or flags select products; an empty filter selects all of them. */
export function isChosen(texts: Answers): boolean {
  return texts.filter !== undefined || conditions.some(({ name }) => texts[name]);
}

/** Adds the flags of the subscription to the answers. */
export function takeFlags(texts: Answers, answers: Answers): void {
  for (const { name, part } of questions)
    if (part === 'subscription' && texts[name] !== undefined) answers[name] = texts[name];
  if (texts.pull) answers.pull = 'pull';
  else if (texts.push ?? answers.EARSHOT_PUBLIC_URL) answers.pull = 'push';
}

/** Checks an answer and converts it to the stored text. Throws commander's InvalidArgumentError. */
function checked(question: Question, text: string, context: AskContext): string {
  const { name, check, choices = [text] } = question;
  if (!choices.includes(text)) {
    throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
  }
  if (check !== undefined) return check(text, context.io);
  if (isSetting(name)) valueFor(name as `EARSHOT_${string}`, text, context.io);
  else parsedFlag(question, text, context);
  return text;
}

const attemptsMax = 5;

/**
 * Asks a question, with the current answer as default, and stores the answer. Without a terminal, the default is the
 * answer. Returns false if there is none.
 */
export async function askQuestion(
  question: Question,
  answers: Answers,
  context: AskContext,
): Promise<boolean> {
  const { name, isSecret: hidden = false, optional = false, fallback } = question;
  const present = answers[name] || answers[`${name}_FILE`];
  const initial = present ?? fallback?.(answers) ?? (optional ? '' : undefined);
  const shown = hidden ? present && 'keep the current one' : initial;
  const none = optional && present ? '; - for none' : '';
  const prompt = `${questionText(question, context)}${shown ? ` [${shown}${none}]` : ''}: `;
  for (let attempts = 0; attempts < attemptsMax; attempts += 1) {
    const text = (await context.io.ask(prompt, { hidden }))?.trim();
    if (text === undefined && initial === undefined) return false;
    try {
      const value = text ? answerOf(question, text, context) : initial;
      if (value === undefined) throw new InvalidArgumentError('An answer is required.');
      if (text || !present) {
        answers[name] = value;
        delete answers[`${name}_FILE`];
      }
      return true;
    } catch (error) {
      if (!(error instanceof InvalidArgumentError || error instanceof AppError)) throw error;
      context.io.stderr.write(`  ${errorText(error)}\n`);
    }
  }
  throw new AppError('usage', `Stopped after ${attemptsMax} invalid answers.`);
}

function answerOf(question: Question, text: string, context: AskContext): string {
  return text === '-' && question.optional ? '' : checked(question, text, context);
}

/** Returns the text of a question; of a flag without its default. */
function questionText(question: Question, context: AskContext): string {
  const { isSecret, optional, part, text: own = flagOf(question, context).description } = question;
  const plain = own.replace(/ \(default: .*?\)|; default: [^)]*/, '');
  const text = isSecret ? `${plain} (not shown)` : plain;
  const empty = part === 'subscription' ? ' (empty: any)' : ' (empty: none)';
  return `${text[0]?.toUpperCase()}${text.slice(1)}${optional ? empty : ''}`;
}

function pullOrPush(text: string): string {
  if (/^(pull|push)$/i.test(text)) return text.toLowerCase();
  throw new InvalidArgumentError('Answer pull or push.');
}

function agreement(text: string): string {
  if (/^y(es)?$/i.test(text)) return 'yes';
  throw new InvalidArgumentError(
    'The authority issues no certificate without your agreement. Answer yes, or press Ctrl-C and choose another certificate: files or off.',
  );
}

function publicUrl(text: string, io: Io): string {
  return valueFor('EARSHOT_PUBLIC_URL', text.includes('://') ? text : `https://${text}`, io);
}

/** Returns the value that the variable has with this text. */
function valueFor(name: `EARSHOT_${string}`, text: string, { settings }: Io): string {
  const row = settings.variables[name];
  if (row === undefined) throw new InvalidArgumentError(`${name} is not a known variable.`);
  const result = row.schema.safeParse(text);
  if (result.success) return String(result.data);
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

function listenOf({ EARSHOT_TLS, EARSHOT_PUBLIC_URL = '' }: Answers): string {
  if (EARSHOT_TLS === 'off') return '127.0.0.1:8081';
  return `0.0.0.0:${URL.parse(EARSHOT_PUBLIC_URL)?.port || '443'}`;
}

export interface SetupFlags extends SubscriptionFlags {
  /** Texts of all flags, as given. */
  texts: Answers;
  dryRun?: true;
  force?: true;
  yes?: true;
  stay: boolean;
}
