/** Carries out `earshot setup --sandbox`: a sandbox and a receiver on this machine, in a folder of their own. */

import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { sessionFileName } from '../../admin/session.ts';
import { dataSections, loadConfig } from '../../config/config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { counted, countText } from '../../domain/formats.ts';
import { defaultSubscriptionName } from '../../domain/subscription.ts';
import { printable } from '../../domain/text.ts';
import { makeDirectory } from '../../host/files.ts';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { accountDefault, demoProject } from '../../sandbox/live-settings.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { registeredSubscriptions } from '../../store/account.ts';
import { catchUpIndex } from '../../store/products/index-maintenance.ts';
import { nameCalledIn } from '../called-as.ts';
import type { Io } from '../io.ts';
import { painter } from '../output.ts';
import { filterOfFlags } from '../register-filter.ts';
import { findRunning, stopText } from '../running-receiver.ts';
import { isTrial, trialFolderDefault, trialHeader } from '../trial-folder.ts';
import type { Settings } from './env-file.ts';
import { simulatedPast, storePast, withStore } from './past.ts';
import { isChosen, type SetupFlags } from './questions.ts';
import { install, type SetupPlan } from './run-setup.ts';

const account = { username: accountDefault, password: accountDefault };

/** Slow enough to read, and fast enough for a first notification within seconds. */
const productsPerSecond = 2;

const pastProductsPerDay = 2_000;

/**
 * Runs until Ctrl-C, or with `--no-stay` until the registration. Ignores the settings of the working folder, unless it
 * is the folder of a trial: then it continues that trial, at the same addresses.
 */
export async function runTrial(
  io: Io,
  flags: SetupFlags,
  { version }: { version: string },
): Promise<void> {
  const isHere = flags.dir === undefined && isTrial(io.workingDir);
  const folder = resolve(io.workingDir, isHere ? '.' : (flags.dir ?? trialFolderDefault));
  const dataDir = join(folder, 'data');
  const earlier = await readEarlier(io, folder, dataDir);
  const { EARSHOT_LISTEN, EARSHOT_CONSOLE_LISTEN } = earlier ?? {};
  const listen = EARSHOT_LISTEN ?? (await addressAt(8443));
  const consoleListen = EARSHOT_CONSOLE_LISTEN ?? (await addressAt(8080));
  const isPull = earlier === null ? flags.pull === true : !earlier.EARSHOT_PUBLIC_URL;
  const certificate = isPull ? null : await createTrialCertificate(folder, () => io.nowUs() / 1000);
  // The new sandbox does not know the session of the earlier one.
  rmSync(join(dataDir, sessionFileName), { force: true });
  const sandbox = await openSandbox(io, earlier, certificate?.authorityPem ?? null);
  try {
    const files = certificate?.files ?? null;
    const publicUrl = isPull ? null : `https://localhost:${portOf(listen)}`;
    const trial = { dataDir, files, sandbox, account, publicUrl, listen, consoleListen };
    const settings = { ...trialSettings(trial), ...earlier };
    const subscription = {
      ...(await describedBy(flags, folder, io)),
      ...(isPull && { pull: true as const }),
    };
    if (!flags.dryRun) {
      makeDirectory(folder);
      await certificate?.write();
      io.stderr.write(
        `A sandbox simulates the catalogue, so no account is needed. Observe and control the sandbox at ${sandbox.controlUrl}.\n`,
      );
    }
    const shown = printable(relative(io.workingDir, folder) || folder);
    const dir = flags.dir === undefined ? '' : ` --dir ${printable(flags.dir)}`;
    const plan: SetupPlan = {
      ...{ folder, settings, subscription, version, dropped: [], mayChange: true },
      flags: { ...flags, yes: true },
      header: `${trialHeader.slice(2)}, which continues this trial.`,
      farewell: `The trial has ended. To continue the trial: \`earshot setup --sandbox${dir}\`. To remove the trial: rm -r ${shown}`,
      welcome: () => showCommands(io, folder, `http://${consoleListen}/`),
      // A trial that continues has a past already.
      prepare: earlier === null ? (own) => fillPast(own, subscription) : undefined,
    };
    // The page and the log name commands for the folder of the trial.
    const env = { ...io.env, earshot_called_as: nameCalledIn(folder, io) };
    await install({ ...io, env }, plan);
  } finally {
    await sandbox.close();
  }
}

async function openSandbox(
  io: Io,
  earlier: Settings | null,
  authorityPem: string | null,
): Promise<Sandbox> {
  const { EARSHOT_CATALOGUE_URL, EARSHOT_INFERENCE_URL } = earlier ?? {};
  const at = async (url: string | undefined, port: number) =>
    URL.parse(url ?? '')?.host ?? (await addressAt(port));
  return startSandbox({
    ...{ account, now: () => io.nowUs() / 1000, ratePerSecond: productsPerSecond },
    past: simulatedPast(io, pastProductsPerDay),
    ...{ modifiedShare: 0.2, deletedShare: 0.1 },
    // The log has the products of the earlier run, so new ones need other ids.
    ...(earlier === null ? {} : { seed: Math.trunc(io.random() * 2 ** 31) }),
    serviceListen: await at(EARSHOT_CATALOGUE_URL, 8091),
    inferenceListen: await at(EARSHOT_INFERENCE_URL, 8092),
    controlListen: await addressAt(8090),
    trustedCaPems: authorityPem === null ? [] : [authorityPem],
  });
}

/** Stores the past of the subscriptions that `setup` registers, and reports it. */
async function fillPast(io: Io, described: SetupPlan['subscription']): Promise<void> {
  const { subscription: name = defaultSubscriptionName, event: events = ['created'] } = described;
  const type = described.pull ? 'pull' : 'push';
  const one = { name, type, events, filter: described.filter ?? '', status: 'running' } as const;
  const subscriptions = (await loadSubscriptionsFile(io.workingDir)) ?? [one];
  const { stored, missing } = await withStore(io, (store) => storePast(io, store, subscriptions));
  // Otherwise the log would report a lag of the index at the start.
  await catchUpIndex(loadConfig(io, dataSections));
  const setup = painter(io, io.stderr)('bold', 'setup:');
  io.stderr.write(
    `${setup} a simulated past day: ${counted(stored, 'notification')} stored, ${countText(missing)} of one hour missing. The receiver compares its log with the catalogue 30 seconds after the start, and fetches what is missing.\n`,
  );
}

/** Reads the settings of an earlier run; null for none. Throws `conflict` if the trial runs or the folder has others. */
async function readEarlier(io: Io, folder: string, dataDir: string): Promise<Settings | null> {
  const running = await findRunning(dataDir);
  if (running !== null) {
    throw new AppError('conflict', `The trial in ${folder} is already running.`, {
      details: [
        `To stop the trial: ${stopText(running)}.`,
        'For a second trial, add --dir trial-2.',
      ],
    });
  }
  const path = join(folder, '.env');
  if (!existsSync(path)) return null;
  if (!isTrial(folder)) {
    throw new AppError(
      'conflict',
      `${path} was not written by \`earshot setup --sandbox\`, so it is not replaced.`,
      { advice: 'Specify another folder: --dir trial-2.' },
    );
  }
  const present = parseEnv(io.readFile(path)) as Settings;
  // Paths are set again, as the folder may have moved.
  const { EARSHOT_DATA_DIR, EARSHOT_TLS_CERT, EARSHOT_TLS_KEY, EARSHOT_PROBE_CA, ...rest } =
    present;
  return Object.fromEntries(Object.entries(rest).filter(([name]) => name.startsWith('EARSHOT_')));
}

/** Returns the subscription of the flags, else the one last registered, else SENTINEL-2. */
async function describedBy(
  flags: SetupFlags,
  folder: string,
  io: Io,
): Promise<SetupPlan['subscription']> {
  if ((await loadSubscriptionsFile(folder)) !== null) return {};
  const registered = registeredSubscriptions(join(folder, 'data'));
  const { event, subscription = registered[0]?.name } = flags;
  const named = { ...(event && { event }), ...(subscription && { subscription }) };
  if (isChosen(flags.texts)) return { ...named, filter: filterOfFlags(flags, io) ?? '' };
  const isKnown = registered.some(({ name }) => name === subscription);
  return isKnown ? named : { ...named, filter: "Collection/Name eq 'SENTINEL-2'" };
}

/** Returns the loopback address with the usual port of a part, or with a free one if it is in use. */
async function addressAt(port: number): Promise<string> {
  return `127.0.0.1:${(await listenOnce(port)) ?? (await anyPort())}`;
}

/** Returns a port that no program uses. */
export async function anyPort(): Promise<number> {
  const port = await listenOnce(0);
  if (port === null) throw new AppError('unavailable', 'There is no free port on this machine.');
  return port;
}

/** Returns the loopback port if it is free, or any free port for 0; null if it is in use. */
async function listenOnce(port: number): Promise<number | null> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    return address === null || typeof address === 'string' ? null : address.port;
  } catch {
    return null;
  } finally {
    server.close();
    await once(server, 'close').catch(() => undefined);
  }
}

/** Prints commands to try, and the address of the page. */
function showCommands(io: Io, folder: string, page: string): void {
  const paint = painter(io, io.stderr);
  const program = printable(nameCalledIn(folder, io));
  const below = relative(io.workingDir, folder);
  const enter = below === '' ? '' : `cd ${printable(below)} && `;
  const commands = ['status', 'query products --limit 5', 'tail'];
  const lines = [...commands.map((command) => `${enter}${program} ${command}`), page];
  io.stderr.write(`In a second terminal, all commands work on this trial, as does the web page:
${lines.map((line) => `  ${paint('bold', line)}\n`).join('')}`);
}

const portOf = (address: string) => Number(address.split(':').at(-1));

interface TrialCertificate {
  /** Root certificate for the sandbox to trust. */
  authorityPem: string;
  files: { cert: string; key: string; ca: string };
  /** Writes the files. The key of the authority is not stored. */
  write(): Promise<void>;
}

/** Creates a certificate for this machine, issued by a new authority, with files in the folder. */
export async function createTrialCertificate(
  folder: string,
  now: () => number,
): Promise<TrialCertificate> {
  const authority = await createCertificateAuthority({ now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const files = { cert: file('certificate.pem'), key: file('key.pem'), ca: file('authority.pem') };
  return {
    authorityPem: authority.certificatePem,
    files,
    write: async () => {
      await writeFile(files.cert, certificate.certificatePem);
      await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
      await writeFile(files.ca, authority.certificatePem);
    },
  };
}

/** Returns the variables for receiver and commands. */
export function trialSettings(trial: {
  dataDir: string;
  /** Null without a public listener. */
  files: TrialCertificate['files'] | null;
  sandbox: Pick<Sandbox, 'catalogueUrl' | 'tokenUrl' | 'inferenceUrl'>;
  account: { username: string; password: string };
  publicUrl: string | null;
  /** `host:port`. */
  listen: string;
  consoleListen: string;
}): Record<string, string> {
  const { dataDir, files, sandbox, account, publicUrl, listen, consoleListen } = trial;
  return {
    ...(publicUrl === null ? {} : { EARSHOT_PUBLIC_URL: publicUrl, EARSHOT_LISTEN: listen }),
    EARSHOT_CONSOLE_LISTEN: consoleListen,
    EARSHOT_DATA_DIR: dataDir,
    ...(files === null
      ? {}
      : {
          EARSHOT_TLS: 'files',
          EARSHOT_TLS_CERT: files.cert,
          EARSHOT_TLS_KEY: files.key,
          EARSHOT_PROBE_CA: files.ca,
        }),
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    // A sandbox on this machine needs no rate limit.
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '6000',
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0] ?? '',
  };
}
