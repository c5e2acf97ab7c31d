/** `earshot sandbox`: the catalogue imitated; it publishes products and pushes notifications. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { readVariables, refuseProblems } from '../../config/read-variables.ts';
import { AppError } from '../../domain/app-error.ts';
import {
  demoFaults,
  type Faults,
  faultsSchema,
  noFaults,
  realisticFaults,
} from '../../sandbox/faults.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { positiveNumber, wholeNumber } from '../number-argument.ts';
import { printable } from '../printable.ts';
import { untilAborted } from '../until-aborted.ts';

const faultMixes = { none: noFaults, realistic: realisticFaults, demo: demoFaults };

interface SandboxFlags {
  endpoint: string;
  trust?: string;
  records?: string;
  products?: number;
  rate: number;
  seed: number;
  modifiedShare: number;
  deletedShare: number;
  faults: keyof typeof faultMixes;
  fault: Partial<Faults>;
  control: string;
  allowRemote?: true;
  allowRemoteControl?: true;
  allowHttp?: true;
}

export function sandboxCommand(io: Io): Command {
  return new Command('sandbox')
    .description(
      'Imitate the catalogue: publish products and push their notifications to an endpoint.',
    )
    .option(
      '--endpoint <url>',
      'where notifications go',
      'https://localhost:8443/notifications/default',
    )
    .option('--trust <file>', 'PEM file of an authority to trust besides the public ones')
    .option('--records <file>', 'publish these product records (JSONL) instead of made-up ones')
    .option('--products <number>', 'stop after so many products', wholeNumber(1))
    .option('--rate <number>', 'products per second', positiveNumber, 1)
    .option(
      '--seed <number>',
      'the same seed brings the same products and faults',
      wholeNumber(),
      1,
    )
    .option('--modified-share <share>', 'share of products modified later, 0 to 1', share, 0)
    .option('--deleted-share <share>', 'share of products deleted later, 0 to 1', share, 0)
    .addOption(
      new Option('--faults <mix>', 'how faulty the way is')
        .choices(Object.keys(faultMixes))
        .default('none'),
    )
    .option('--fault <name=rate>', 'one fault and its rate, 0 to 1; may be repeated', addFault, {})
    .option('--control <host:port>', 'where it can be watched and steered', '127.0.0.1:8090')
    .option('--allow-remote', 'allow an endpoint on another machine')
    .option('--allow-remote-control', 'allow a control port that other machines reach')
    .option('--allow-http', 'allow an endpoint without HTTPS, behind no proxy')
    .addHelpText('after', helpText)
    .action((flags: SandboxFlags) => sandbox(io, flags));
}

const helpText = `
Credentials come from EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD (or …_FILE). The
certificate of the endpoint is checked as the real service does; a self-signed one is refused.
A notification is tried, again after 1, 5 and 25 seconds, and then lost.

Faults: ${Object.keys(noFaults).join(' ')}

Examples:
  $ earshot sandbox --trust authority.pem --rate 5 --modified-share 0.2
  $ earshot sandbox --trust authority.pem --products 1000 --rate 100 --fault duplicate=0.1
  $ curl http://127.0.0.1:8090/totals                               what it has done
  $ curl -X PATCH -d '{"lost":0.5}' -H 'Content-Type: application/json' http://127.0.0.1:8090/faults`;

async function sandbox(io: Io, flags: SandboxFlags): Promise<void> {
  const { username, password } = endpointCredentials(io);
  const paint = painter(io, io.stderr);
  const tell = (text: string) => void io.stderr.write(`${text}\n`);
  if (flags.allowRemote) {
    tell(paint('yellow', 'Made-up notifications may now go to another machine.'));
  }
  const options = optionsOf(io, flags);
  if (flags.trust !== undefined) {
    tell(
      paint('yellow', `Trusting ${flags.trust} besides the public authorities. For tests only.`),
    );
  }
  // Loaded when it is asked for, as in the demo.
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const failures = new Set<string>();
  let lostUnplanned = 0;
  const running = await startSandbox({
    ...options,
    username,
    password,
    onAttempt: (failure) => {
      if (failure === null || failure.includes(played) || failures.has(failure)) return;
      failures.add(failure);
      tell(paint('yellow', `not delivered yet: ${printable(failure)}. ${adviceFor(failure)}`));
    },
    onSettled: ({ outcome, event, productName, reason }) => {
      if (outcome === 'lost' && reason?.includes(played) !== true) lostUnplanned += 1;
      const mark =
        outcome === 'delivered' ? paint('green', 'delivered') : paint('red', 'lost     ');
      const name = printable(productName);
      tell(`${mark} ${event.padEnd(8)} ${name}${reason === null ? '' : `  ${printable(reason)}`}`);
    },
  });
  try {
    tell(`Publishing to ${flags.endpoint}. Watch and steer at ${running.controlUrl}. Ctrl-C ends.`);
    await Promise.race([running.finished, untilAborted(io.signal)]);
    io.stdout.write(`${JSON.stringify(running.totals())}\n`);
    if (lostUnplanned > 0) {
      throw new AppError(
        'unavailable',
        `${lostUnplanned} notifications were lost, and no fault was set.`,
      );
    }
  } finally {
    await running.close();
  }
}

/** How the sandbox marks a fault of its own. */
const played = 'played by the sandbox';

function adviceFor(failure: string): string {
  if (/40[13]/.test(failure)) {
    return 'Set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD as the receiver has them.';
  }
  if (failure.includes('404')) return 'The path is /notifications/<name>, in small letters.';
  if (/certificate|self.signed|authority/i.test(failure))
    return 'For a test authority: --trust FILE.';
  if (/ECONNREFUSED/.test(failure)) return 'Is the receiver running there?';
  return 'It is tried again.';
}

function optionsOf(io: Io, flags: SandboxFlags): Omit<SandboxOptions, 'username' | 'password'> {
  const { endpoint, records, products, rate, seed, modifiedShare, deletedShare } = flags;
  return {
    endpoint,
    seed,
    modifiedShare,
    deletedShare,
    ratePerSecond: rate,
    faults: { ...faultMixes[flags.faults], ...flags.fault },
    controlListen: flags.control,
    allowRemote: flags.allowRemote === true,
    allowRemoteControl: flags.allowRemoteControl === true,
    allowPlainHttp: flags.allowHttp === true,
    trustedCaPems: flags.trust === undefined ? [] : [readTrust(io, flags.trust)],
    now: () => io.nowUs() / 1000,
    ...(products === undefined ? {} : { count: products }),
    ...(records === undefined ? {} : { recordsFile: records }),
  };
}

function endpointCredentials(io: Io): { username: string; password: string } {
  const { values, problems } = readVariables(io, ['endpointUsername', 'endpointPassword']);
  refuseProblems(problems);
  const { endpointUsername: username, endpointPassword: password } = values;
  if (username === undefined || password === undefined) {
    throw new AppError(
      'configuration',
      'The endpoint needs credentials. Set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD as the receiver has them.',
    );
  }
  return { username, password };
}

function readTrust(io: Io, file: string): string {
  try {
    return io.readFile(file);
  } catch (cause) {
    throw new AppError('usage', `--trust names ${file}, which cannot be read.`, { cause });
  }
}

function share(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0 && value <= 1)) {
    throw new InvalidArgumentError('Use a number from 0 to 1.');
  }
  return value;
}

function addFault(text: string, sofar: Partial<Faults>): Partial<Faults> {
  const [name = '', rate = '', ...rest] = text.split('=');
  if (rest.length > 0) throw new InvalidArgumentError('Use name=rate, such as lost=0.1.');
  if (!Object.hasOwn(faultsSchema.shape, name)) {
    throw new InvalidArgumentError(`Known faults: ${Object.keys(noFaults).join(', ')}.`);
  }
  return { ...sofar, [name]: share(rate) };
}
