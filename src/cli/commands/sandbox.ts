/** `earshot sandbox`: runs a local imitation of the catalogue. */
import { type Command, Option } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import type { AttemptFailure } from '../../sandbox/delivery/dispatcher.ts';
import { noFaults } from '../../sandbox/delivery/faults.ts';
import { demoProject, otherProject } from '../../sandbox/live-settings.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import type { SandboxOptions } from '../../sandbox/sandbox-options.ts';
import { defineCommand } from '../command.ts';
import { positiveNumber, wholeNumber } from '../flags.ts';
import { type Io, untilAborted } from '../io.ts';
import { painter, wrapText } from '../output.ts';
import {
  accountDefault,
  addFault,
  faultMixes,
  readDuration,
  readShare,
  type SandboxFlags,
  sandboxOptions,
} from '../sandbox-flags.ts';

export const sandboxCommand = defineCommand('sandbox', {
  description: 'Run a local imitation of the catalogue, for tests without an account.',
  flags: (command) =>
    addPublishingOptions(command)
      .addOption(
        new Option('--faults <mix>', 'inject faults (a preset)')
          .choices(Object.keys(faultMixes))
          .default('none'),
      )
      .option('--fault <name=rate>', 'rate of one fault, 0 to 1 (repeatable)', addFault)
      .option('--control <host:port>', 'address of the control interface', '127.0.0.1:8090')
      .option(
        '--service <host:port>',
        'address of the catalogue and the identity provider',
        '127.0.0.1:8091',
      )
      .option('--inference <host:port>', 'address of the inference service', '127.0.0.1:8092')
      .option('--allow-remote', 'allow endpoints on other machines')
      .option(
        '--allow-remote-control',
        'allow --control, --service and --inference on addresses that other machines can reach',
      )
      .option('--allow-http', 'allow endpoints without HTTPS'),
  help: `The sandbox waits for a subscription, unless --endpoint is set. Variables:
  EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD  credentials for --endpoint
  EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD    account (default: sandbox and sandbox)
  EARSHOT_ACCOUNT_TOTP                                  shared secret; if set, logins need a code
A failed push is retried after 1, 5 and 25 seconds. Then the notification is dropped. Like the
catalogue, the sandbox verifies the certificate of the endpoint. Catalogue queries return the last
12,000 published products, the last 12,000 deleted products and the products of --past.

The inference service imitates a model: the answer repeats facts of the request. Projects,
keys and models:
  ${demoProject.name}, key ${demoProject.key}: ${demoProject.models.join(', ')}
  ${otherProject.name}, key ${otherProject.key}: ${otherProject.models.join(', ')}
The control interface answers GET /totals, /events, /queues, /faults, /service and /inference. PATCH
changes /faults, /service and /inference. POST /queues drops entries of a pull subscription's queue.
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

/** Adds the flags of published products and the endpoint. */
function addPublishingOptions(command: Command): Command {
  return command
    .option('--endpoint <url>', 'endpoint for pushes without a registered subscription')
    .option('--trust <file>', 'PEM file of an additional certificate authority')
    .option('--records <file>', 'JSONL file with product records (default: generated records)')
    .option('--products <number>', 'number of products (default: unlimited)', wholeNumber(1))
    .option('--rate <number>', 'number of products per second', positiveNumber, 1)
    .option('--seed <number>', 'seed of the generated products and faults', wholeNumber(), 1)
    .option(
      '--modified-share <share>',
      'share of products that are modified later, 0 to 1',
      readShare,
      0,
    )
    .option(
      '--second-modified-share <share>',
      'share of modified products that are modified a second time, 0 to 1',
      readShare,
      0,
    )
    .option(
      '--deleted-share <share>',
      'share of products that are deleted later, 0 to 1',
      readShare,
      0,
    )
    .option(
      '--late-share <share>',
      'share of products that appear late in query results, 0 to 1',
      readShare,
      0,
    )
    .addOption(
      new Option('--late-max <time>', 'maximum delay of late products, such as 10m or 3h')
        .argParser(readDuration)
        .default(3_600_000, '1h'),
    )
    .option(
      '--past <time>',
      'duration of the simulated past, such as 10d (past products are not pushed)',
      readDuration,
    )
    .option(
      '--past-rate <number>',
      'number of products per day of the simulated past',
      positiveNumber,
      32_000,
    );
}

async function sandbox(io: Io, flags: SandboxFlags): Promise<void> {
  const paint = painter(io, io.stderr);
  const print = (text: string) => void io.stderr.write(`${text}\n`);
  if (flags.allowRemote) {
    print(paint('yellow', 'Generated notifications may be sent to other machines.'));
  }
  const options = sandboxOptions(io, flags);
  if (flags.trust !== undefined) {
    print(
      paint('yellow', `Trusting ${flags.trust} in addition to public authorities. For tests only.`),
    );
  }
  printPast(options, print);
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const failures = new Set<string>();
  let lostUnplanned = 0;
  const running = await startSandbox({
    ...options,
    onAttempt: (failure) => {
      if (failure === null || failure.isInjected || failures.has(failure.text)) return;
      failures.add(failure.text);
      const advice = adviceFor(failure);
      print(paint('yellow', `not delivered yet: ${printable(failure.text)}. ${advice}`));
    },
    onSettled: ({ outcome, event, productName, reason }, failure) => {
      if (failure?.isInjected === false) lostUnplanned += 1;
      const mark =
        outcome === 'delivered' ? paint('green', 'delivered') : paint('red', 'lost     ');
      const name = printable(productName);
      print(`${mark} ${event.padEnd(8)} ${name}${reason === null ? '' : `  ${printable(reason)}`}`);
    },
  });
  try {
    print(announcement(options, running));
    await Promise.race([running.finished, untilAborted(io.signal)]);
    io.stdout.write(`${JSON.stringify(running.totals())}\n`);
    if (lostUnplanned > 0) {
      throw new AppError(
        'unavailable',
        `${lostUnplanned} ${lostUnplanned === 1 ? 'notification was' : 'notifications were'} lost without an injected fault. See the lines above.`,
      );
    }
  } finally {
    await running.close();
  }
}

function printPast({ past }: SandboxOptions, print: (text: string) => void): void {
  if (past === undefined) return;
  const products = Math.round((past.durationMs / 86_400_000) * (past.productsPerDay ?? 0));
  print(`Publishing ${products.toLocaleString('en')} past products first.`);
}

/** Lines for .env, and the next step. */
function announcement(
  { endpoint, account }: SandboxOptions,
  { catalogueUrl, tokenUrl, inferenceUrl, controlUrl }: Sandbox,
): string {
  const username = account?.username ?? accountDefault;
  const next =
    endpoint === undefined
      ? 'Waiting for a running subscription.'
      : `Publishing to ${String(endpoint)}.`;
  return [
    'To use the sandbox, put these lines into .env:',
    `EARSHOT_CATALOGUE_URL=${catalogueUrl}`,
    `EARSHOT_TOKEN_URL=${tokenUrl}`,
    `EARSHOT_ACCOUNT_USERNAME=${printable(username)}`,
    // Only the default password is printed.
    ...(account?.password === accountDefault ? [`EARSHOT_ACCOUNT_PASSWORD=${accountDefault}`] : []),
    `EARSHOT_INFERENCE_URL=${inferenceUrl}`,
    `EARSHOT_INFERENCE_API_KEY=${demoProject.key}`,
    `EARSHOT_INFERENCE_MODEL=${demoProject.models[0]}`,
    `${next} Control interface: ${controlUrl}. Stop with Ctrl-C.`,
  ].join('\n');
}

function adviceFor({ status, code }: AttemptFailure): string {
  if (status === 401 || status === 403) {
    return 'The receiver must have the endpoint credentials of the registered subscription, or those in EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD of the sandbox.';
  }
  if (status === 404)
    return 'Check that the endpoint path is /notifications/<name>, in lower case.';
  if (code?.includes('CERT') || code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE') {
    return 'For a test authority: --trust FILE.';
  }
  if (code === 'ECONNREFUSED') return 'Check that the receiver is running at this address.';
  return 'It will be retried.';
}
