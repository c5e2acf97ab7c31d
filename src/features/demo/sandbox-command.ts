/** `earshot sandbox`: runs a local imitation of the catalogue. */
import { InvalidArgumentError } from 'commander';
import { defineCommand } from '../../core/cli/command.ts';
import { positiveNumber, wholeNumber } from '../../core/cli/flags.ts';
import { type Io, untilAborted } from '../../core/cli/io.ts';
import { painter, wrapText } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { printable } from '../../core/terms/text.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import {
  accountDefault,
  demoKeys,
  demoProject,
  type Faults,
  noFaults,
  otherProject,
} from '../../sandbox/settings.ts';

interface SandboxFlags {
  trust?: string;
  products?: number;
  rate: number;
  seed: number;
  content?: number;
  fault?: Partial<Faults>;
  control: string;
  service: string;
  inference: string;
}

export const sandboxCommand = defineCommand('sandbox', {
  description: 'Run a local imitation of the catalogue, for tests without an account.',
  flags: (command) =>
    command
      .option('--trust <file>', 'PEM file of an additional certificate authority')
      .option('--products <number>', 'number of products (default: unlimited)', wholeNumber(1))
      .option('--rate <number>', 'number of products per second', positiveNumber, 1)
      .option('--seed <number>', 'seed of the generated products and faults', wholeNumber(), 1)
      .option('--content <bytes>', 'size of each product, for downloads', wholeNumber(1))
      .option('--fault <name=rate>', 'rate of one fault, 0 to 1 (repeatable)', addFault)
      .option('--control <host:port>', 'address of the control interface', '127.0.0.1:8090')
      .option(
        '--service <host:port>',
        'address of the catalogue and the identity provider',
        '127.0.0.1:8091',
      )
      .option('--inference <host:port>', 'address of the inference service', '127.0.0.1:8092'),
  help: `The sandbox publishes when a subscription runs, and pushes to endpoints on this machine only. A
fifth of the products is modified later, and a tenth deleted. Variables:
  EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD    account (default: sandbox and sandbox)
  EARSHOT_ACCOUNT_TOTP                                  shared secret; if set, logins need a code
A failed push is retried after 1, 5 and 25 seconds. Then the notification is dropped. Like the
catalogue, the sandbox verifies the certificate of the endpoint. Catalogue queries return the
products of the last 100,000 events.

The inference service imitates a model: the answer repeats names of facts. Projects, keys, models:
  ${demoProject.name}, key ${demoProject.key}: ${demoProject.models.join(', ')}
  ${otherProject.name}, key ${otherProject.key}: ${otherProject.models.join(', ')}
With --content, the service answers downloads: HTTP with a token, and S3 in the bucket eodata, with
the key ${demoKeys.access} and the secret ${demoKeys.secret}. The record has the MD5.
The control interface lists its operations at /. PATCH changes /faults, /service and /inference.
The last line of output has the totals. "published" counts the notifications that the subscriptions
expect. Unacknowledged entries of queues are "pending", and the sandbox does not wait for them.

${wrapText(`Faults: ${Object.keys(noFaults).join(' ')}`, '', { isTTY: true, columns: 100 }).join('\n')}

Exit codes: 0 done, 1 failed or notifications lost without an injected fault, 2 wrong usage.

Examples:
  $ earshot sandbox --trust authority.pem                           wait for a subscription
  $ earshot sandbox --trust authority.pem --products 1000 --rate 100 --fault duplicate=0.1
  $ curl -X PATCH -d '{"lost":0.5}' http://127.0.0.1:8090/faults    lose half of the notifications
  $ curl -d '{"advanceMs":5270400000}' http://127.0.0.1:8090/clock  advance the clock by 61 days`,
  run: sandbox,
});

/** Adds one `name=rate` to the previous faults. */
function addFault(text: string, previous?: Partial<Faults>): Partial<Faults> {
  const [, name = '', rate = ''] = /^(\w+)=([\d.]+)$/.exec(text) ?? [];
  if (Object.hasOwn(noFaults, name) && Number(rate) <= 1) {
    return { ...previous, [name]: Number(rate) };
  }
  throw new InvalidArgumentError(
    `Use name=rate, with a rate from 0 to 1. Known faults: ${Object.keys(noFaults).join(', ')}.`,
  );
}

async function sandbox(io: Io, flags: SandboxFlags): Promise<void> {
  const paint = painter(io, io.stderr);
  const print = (text: string) => void io.stderr.write(`${text}\n`);
  const { trust, products: count } = flags;
  if (trust !== undefined) {
    print(paint('yellow', `Trusting ${trust} in addition to public authorities. For tests only.`));
  }
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  let lostUnplanned = 0;
  const account = accountOf(io);
  const running = await startSandbox({
    ...account,
    ...{ seed: flags.seed, ratePerSecond: flags.rate, modifiedShare: 0.2, deletedShare: 0.1 },
    ...{ controlListen: flags.control, serviceListen: flags.service },
    ...{ inferenceListen: flags.inference, now: () => io.nowUs() / 1000 },
    ...{ faults: flags.fault, count, contentBytes: flags.content },
    trustedCaPems: trust === undefined ? [] : [readTrust(io, trust)],
    onSettled: ({ outcome, event, productName, reason }) => {
      const { lost, connectionFails, answerLost } = running.faults.current();
      if (outcome === 'lost' && lost + connectionFails + answerLost === 0) lostUnplanned += 1;
      const mark =
        outcome === 'delivered' ? paint('green', 'delivered') : paint('red', 'lost     ');
      const name = printable(productName);
      print(`${mark} ${event.padEnd(8)} ${name}${reason === null ? '' : `  ${printable(reason)}`}`);
    },
  });
  try {
    print(announcement(account, running));
    await Promise.race([running.finished, untilAborted(io.signal)]);
    io.stdout.write(`${JSON.stringify(running.totals())}\n`);
  } finally {
    await running.close();
  }
  if (lostUnplanned === 0) return;
  const lost = `${lostUnplanned} ${lostUnplanned === 1 ? 'notification was' : 'notifications were'}`;
  throw new AppError('unavailable', `${lost} lost without an injected fault. See the lines above.`);
}

function accountOf(io: Io) {
  const { login } = loadConfig(io, ['login']);
  const { username = accountDefault, password = accountDefault, totp } = login;
  // Six digits are a one-time code, not a shared secret: later codes cannot be checked with it.
  const isSecret = totp !== undefined && !/^\d{6}$/.test(totp);
  return { account: { username, password }, service: isSecret ? { totpSecret: totp } : {} };
}

function readTrust(io: Io, file: string): string {
  try {
    return io.readFile(file);
  } catch (cause) {
    throw new AppError('usage', `--trust: ${file} cannot be read.`, { cause });
  }
}

/** Lines for .env, and the next step. */
function announcement(
  { account: { username, password } }: ReturnType<typeof accountOf>,
  { catalogueUrl, tokenUrl, inferenceUrl, controlUrl }: Sandbox,
): string {
  return [
    'To use the sandbox, put these lines into .env:',
    `EARSHOT_CATALOGUE_URL=${catalogueUrl}`,
    `EARSHOT_TOKEN_URL=${tokenUrl}`,
    `EARSHOT_ACCOUNT_USERNAME=${printable(username)}`,
    // Only the default password is printed.
    ...(password === accountDefault ? [`EARSHOT_ACCOUNT_PASSWORD=${accountDefault}`] : []),
    `EARSHOT_INFERENCE_URL=${inferenceUrl}`,
    `EARSHOT_INFERENCE_API_KEY=${demoProject.key}`,
    `EARSHOT_INFERENCE_MODEL=${demoProject.models[0]}`,
    `Waiting for a running subscription. Control interface: ${controlUrl}. Stop with Ctrl-C.`,
  ].join('\n');
}
