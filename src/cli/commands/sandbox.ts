/** `earshot sandbox`: the catalogue imitated; it takes registrations, publishes and pushes notifications. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { readVariables, refuseProblems } from '../../config/read-variables.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import {
  demoFaults,
  type Faults,
  faultsSchema,
  noFaults,
  realisticFaults,
} from '../../sandbox/delivery/faults.ts';
import { demoProject, otherProject } from '../../sandbox/inference/inference-projects.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { positiveNumber, wholeNumber } from '../number-argument.ts';
import { untilAborted } from '../until-aborted.ts';
import { wrapText } from '../wrap-text.ts';

/** Name and password of the account when no variable says otherwise. */
const accountDefault = 'sandbox';

const faultMixes = { none: noFaults, realistic: realisticFaults, demo: demoFaults };

interface SandboxFlags {
  endpoint?: string;
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
  service: string;
  inference: string;
  allowRemote?: true;
  allowRemoteControl?: true;
  allowHttp?: true;
}

export function sandboxCommand(io: Io): Command {
  return new Command('sandbox')
    .description(
      'Imitate the catalogue: take registrations, publish products, push their notifications.',
    )
    .option('--endpoint <url>', 'push here from the start, without a registration')
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
    .option('--service <host:port>', 'where subscriptions and tokens are served', '127.0.0.1:8091')
    .option('--inference <host:port>', 'where summaries are written', '127.0.0.1:8092')
    .option('--allow-remote', 'allow an endpoint on another machine')
    .option('--allow-remote-control', 'allow ports that other machines reach')
    .option('--allow-http', 'allow an endpoint without HTTPS, behind no proxy')
    .addHelpText('after', helpText)
    .action((flags: SandboxFlags) => sandbox(io, flags));
}

const helpText = `
Without --endpoint it waits until somebody registers a subscription. It has one account: its name
and password are EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD (or …_FILE), else sandbox and
sandbox. With a shared secret in EARSHOT_ACCOUNT_TOTP a login needs a one-time code. A filter that
is wrong is refused; a subscription is sent what matches its filter, and "published" in the last
line counts the notifications that were owed to subscriptions. The last 12,000 products published,
and the last 12,000 deleted, are served at /odata/v1/Products and /odata/v1/DeletedProducts, to
anybody.

The inference service has no model behind it: it repeats facts of the request, the same for the same
request. It plays faults too, as shares of the requests or for the next ones: GET /inference on the
control port names them. It has two projects: ${demoProject.name}, with the key ${demoProject.key} and the models
${demoProject.models.join(' and ')};
and ${otherProject.name}, with the key ${otherProject.key} and the model
${otherProject.models.join(' and ')}.

With --endpoint, credentials come from EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD (or
…_FILE). The certificate of an endpoint is checked as the real service does; a self-signed one is
refused. A notification is tried, again after 1, 5 and 25 seconds, and then lost.

${wrapText(`Faults: ${Object.keys(noFaults).join(' ')}`, '', { isTTY: true, columns: 100 }).join('\n')}

Examples:
  $ earshot sandbox --trust authority.pem                         then, elsewhere: earshot register
  $ earshot sandbox --trust authority.pem --endpoint https://localhost:8443/notifications/default
  $ earshot sandbox --trust authority.pem --products 1000 --rate 100 --fault duplicate=0.1
  $ curl http://127.0.0.1:8090/totals                               what it has done
  $ curl -X PATCH -d '{"lost":0.5}' http://127.0.0.1:8090/faults    half of it is lost from now on
  $ curl -X PATCH -d '{"next":{"rateLimited":2}}' http://127.0.0.1:8090/inference
  $ curl -d '{"advanceMs":5270400000}' http://127.0.0.1:8090/clock  61 days pass`;

async function sandbox(io: Io, flags: SandboxFlags): Promise<void> {
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
    tell(announcement(options, running));
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

/** The lines for .env first, then what happens next. */
function announcement(
  { endpoint, account }: SandboxOptions,
  { catalogueUrl, tokenUrl, inferenceUrl, controlUrl }: Sandbox,
): string {
  const username = account?.username ?? accountDefault;
  const next =
    endpoint === undefined
      ? 'Waiting for a subscription that runs.'
      : `Publishing to ${String(endpoint)}.`;
  return [
    'To use it, put these lines into .env:',
    `EARSHOT_CATALOGUE_URL=${catalogueUrl}`,
    `EARSHOT_TOKEN_URL=${tokenUrl}`,
    `EARSHOT_ACCOUNT_USERNAME=${printable(username)}`,
    // Whoever chose another password knows it; it is not to stand on a screen.
    ...(account?.password === accountDefault ? [`EARSHOT_ACCOUNT_PASSWORD=${accountDefault}`] : []),
    `EARSHOT_INFERENCE_URL=${inferenceUrl}`,
    `EARSHOT_INFERENCE_API_KEY=${demoProject.key}`,
    `EARSHOT_INFERENCE_MODEL=${demoProject.models[0]}`,
    `${next} Watch and steer at ${controlUrl}. Ctrl-C ends.`,
  ].join('\n');
}

/** How the sandbox marks a fault of its own. */
const played = 'played by the sandbox';

function adviceFor(failure: string): string {
  if (/40[13]/.test(failure)) {
    return 'The receiver has other credentials than EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD here, or than those that were registered.';
  }
  if (failure.includes('404')) return 'The path is /notifications/<name>, in small letters.';
  if (/certificate|self.signed|authority/i.test(failure))
    return 'For a test authority: --trust FILE.';
  if (/ECONNREFUSED/.test(failure)) return 'Is the receiver running there?';
  return 'It is tried again.';
}

function optionsOf(io: Io, flags: SandboxFlags): SandboxOptions {
  const { endpoint, records, products, rate, seed, modifiedShare, deletedShare } = flags;
  return {
    ...accountOptions(io),
    ...(endpoint === undefined ? {} : { endpoint, ...endpointCredentials(io) }),
    seed,
    modifiedShare,
    deletedShare,
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
  const keys = ['accountUsername', 'accountPassword', 'accountTotp'] as const;
  const { values, problems } = readVariables(io, keys);
  refuseProblems(problems);
  const { accountUsername, accountPassword, accountTotp: totp } = values;
  return {
    account: {
      username: accountUsername ?? accountDefault,
      password: accountPassword ?? accountDefault,
    },
    // Six digits are one code, from which no other can be checked.
    ...(totp === undefined || /^\d{6}$/.test(totp) ? {} : { service: { totpSecret: totp } }),
  };
}

function endpointCredentials(io: Io): { username: string; password: string } {
  const { values, problems } = readVariables(io, ['endpointUsername', 'endpointPassword']);
  refuseProblems(problems);
  const { endpointUsername: username, endpointPassword: password } = values;
  if (username === undefined || password === undefined) {
    throw new AppError(
      'configuration',
      'The endpoint needs credentials. Set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD as the receiver has them, or leave --endpoint out and register.',
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
