/** `earshot sandbox`: the catalogue imitated; it takes registrations, publishes and pushes notifications. */
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
  description:
    'Imitate the catalogue: take registrations, publish products, push their notifications.',
  flags: (command) =>
    addPublishingOptions(command)
      .addOption(
        new Option('--faults <mix>', 'how faulty the way is')
          .choices(Object.keys(faultMixes))
          .default('none'),
      )
      .option(
        '--fault <name=rate>',
        'one fault and its rate, 0 to 1; may be repeated',
        addFault,
        {},
      )
      .option('--control <host:port>', 'where it can be watched and steered', '127.0.0.1:8090')
      .option(
        '--service <host:port>',
        'where subscriptions and tokens are served',
        '127.0.0.1:8091',
      )
      .option('--inference <host:port>', 'where summaries are written', '127.0.0.1:8092')
      .option('--allow-remote', 'allow an endpoint on another machine')
      .option('--allow-remote-control', 'allow ports that other machines reach')
      .option('--allow-http', 'allow an endpoint without HTTPS, behind no proxy'),
  help: `Without --endpoint it waits until somebody registers a subscription. It has one account: its name
and password are EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD (or …_FILE), else sandbox and
sandbox. With a shared secret in EARSHOT_ACCOUNT_TOTP a login needs a one-time code. A filter that
is wrong is refused; a subscription is sent what matches its filter, and "published" in the last
line counts the notifications that were owed to subscriptions. The last 12,000 products published,
and the last 12,000 deleted, are served at /odata/v1/Products and /odata/v1/DeletedProducts, to
anybody; those of --past come on top. It takes a second for each 6,000 products or so. PATCH
/service on the control port makes these lists slow, refused or broken, for shares of the requests
or the next ones: GET /service names the knobs.

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
  $ curl -X PATCH -d '{"nextQueries":{"rateLimited":2}}' http://127.0.0.1:8090/service
  $ curl http://127.0.0.1:8090/events                     every event, and what became of it
  $ curl -d '{"advanceMs":5270400000}' http://127.0.0.1:8090/clock  61 days pass`,
  run: sandbox,
});

/** Adds what is published, and where to. */
function addPublishingOptions(command: Command): Command {
  return command
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
    .option('--modified-share <share>', 'share of products modified later, 0 to 1', readShare, 0)
    .option(
      '--second-modified-share <share>',
      'share of those whose checksums are put right after that',
      readShare,
      0,
    )
    .option('--deleted-share <share>', 'share of products deleted later, 0 to 1', readShare, 0)
    .option(
      '--late-share <share>',
      'share of products that the lists show late, 0 to 1',
      readShare,
      0,
    )
    .addOption(
      new Option('--late-max <time>', 'how late they are at most, such as 10m or 3h')
        .argParser(readDuration)
        .default(3_600_000, '1h'),
    )
    .option(
      '--past <time>',
      'publish so long a past first, such as 10d, and tell nobody',
      readDuration,
    )
    .option('--past-rate <number>', 'products a day of it', positiveNumber, 32_000);
}

async function sandbox(io: Io, flags: SandboxFlags): Promise<void> {
  const paint = painter(io, io.stderr);
  const tell = (text: string) => void io.stderr.write(`${text}\n`);
  if (flags.allowRemote) {
    tell(paint('yellow', 'Made-up notifications may now go to another machine.'));
  }
  const options = sandboxOptions(io, flags);
  if (flags.trust !== undefined) {
    tell(
      paint('yellow', `Trusting ${flags.trust} besides the public authorities. For tests only.`),
    );
  }
  // Loaded when it is asked for, as in the demo.
  tellPast(options, tell);
  const { startSandbox } = await import('../../sandbox/sandbox.ts');
  const failures = new Set<string>();
  let lostUnplanned = 0;
  const running = await startSandbox({
    ...options,
    onAttempt: (failure) => {
      if (failure === null || failure.isInjected || failures.has(failure.text)) return;
      failures.add(failure.text);
      const advice = adviceFor(failure);
      tell(paint('yellow', `not delivered yet: ${printable(failure.text)}. ${advice}`));
    },
    onSettled: ({ outcome, event, productName, reason }, failure) => {
      if (failure?.isInjected === false) lostUnplanned += 1;
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
        `${lostUnplanned} ${lostUnplanned === 1 ? 'notification was' : 'notifications were'} lost, and not by a fault that was set: the lines above say why.`,
      );
    }
  } finally {
    await running.close();
  }
}

function tellPast({ past }: SandboxOptions, tell: (text: string) => void): void {
  if (past === undefined) return;
  const products = Math.round((past.durationMs / 86_400_000) * (past.productsPerDay ?? 0));
  tell(`Publishing a past of ${products.toLocaleString('en')} products first.`);
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

function adviceFor({ status, code }: AttemptFailure): string {
  if (status === 401 || status === 403) {
    return 'The receiver has other credentials than EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD here, or than those that were registered.';
  }
  if (status === 404) return 'The path is /notifications/<name>, in small letters.';
  if (code?.includes('CERT') || code === 'UNABLE_TO_VERIFY_LEAF_SIGNATURE') {
    return 'For a test authority: --trust FILE.';
  }
  if (code === 'ECONNREFUSED') return 'Is the receiver running there?';
  return 'It is tried again.';
}
