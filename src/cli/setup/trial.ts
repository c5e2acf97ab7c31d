/** Carries out `earshot setup --sandbox`: a sandbox and a receiver on this machine, in a folder of their own. */

import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, relative, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { sessionFileName } from '../../admin/session.ts';
import { dataSections, loadConfig } from '../../config/config.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError } from '../../domain/app-error.ts';
import { counted, countText } from '../../domain/formats.ts';
import { defaultSubscriptionName } from '../../domain/subscription.ts';
import { printable } from '../../domain/text.ts';
import { collection } from '../../filter/builder.ts';
import { makeDirectory } from '../../host/files.ts';
import { createCertificateAuthority } from '../../sandbox/certificate-authority.ts';
import { accountDefault, demoProject } from '../../sandbox/live-settings.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { databaseFileName } from '../../store/engine/database.ts';
import { catchUpIndex } from '../../store/products/index-maintenance.ts';
import { openStoreReader } from '../../store/store.ts';
import { nameCalledIn } from '../called-as.ts';
import type { Io } from '../io.ts';
import { painter } from '../output.ts';
import { filterOfFlags } from '../register-filter.ts';
import { findRunning, type RunningNote, stopText } from '../running-receiver.ts';
import {
  findTrial,
  hasSettings,
  isTrial,
  trialFolderDefault,
  trialHeader,
} from '../trial-folder.ts';
import type { Settings } from './env-file.ts';
import { simulatedPast, storePast, withStore } from './past.ts';
import { isChosen, type SetupFlags } from './questions.ts';
import { install } from './run-setup.ts';

const controlLine = /^# Control port of the sandbox: (\S+:\d+)$/m;

const account = { username: accountDefault, password: accountDefault };

/** Slow enough to read, and fast enough for a first notification within seconds. */
const productsPerSecond = 2;

const pastProductsPerDay = 2_000;

/** Addresses of the parts of a trial, as `host:port`. */
type Addresses = Record<'service' | 'control' | 'inference' | 'listen' | 'consoleListen', string>;

/**
 * Runs until Ctrl-C, or with `--no-stay` until the registration. Ignores the settings of the working folder, unless it
 * is the folder of a trial: then it continues that trial.
 */
export async function runTrial(
  io: Io,
  flags: SetupFlags,
  { version }: { version: string },
): Promise<void> {
  const folder = trialFolder(io, flags);
  const dataDir = join(folder, 'data');
  const running = await findRunning(dataDir);
  if (running !== null) throw trialRuns(io, folder, running);
  const earlier = readEarlier(io, folder);
  const addresses = { ...(await newAddresses()), ...earlier?.addresses };
  await requireFreePorts(addresses);
  const now = () => io.nowUs() / 1000;
  const isPull =
    earlier === null ? flags.pull === true : earlier.settings.EARSHOT_PUBLIC_URL === undefined;
  const certificate = isPull ? null : await createTrialCertificate(folder, now);
  // The new sandbox does not know the session of the earlier one.
  rmSync(join(dataDir, sessionFileName), { force: true });
  const sandbox = await openSandbox(io, addresses, {
    isContinued: earlier !== null,
    authorityPem: certificate?.authorityPem ?? null,
  });
  try {
    const files = certificate?.files ?? null;
    const { listen, consoleListen } = addresses;
    const publicUrl = isPull ? null : `https://localhost:${portOf(listen)}`;
    const trial = { dataDir, files, sandbox, account, publicUrl, listen, consoleListen };
    const settings = { ...trialSettings(trial), ...earlier?.settings };
    const chosen = await filterFlags(flags, dataDir);
    const pull = isPull ? ({ pull: true } as const) : {};
    const trialFlags = { ...flags, ...pull, ...chosen, yes: true, force: true } as const;
    if (!flags.dryRun) {
      makeDirectory(folder);
      await certificate?.write();
      io.stderr.write(
        `A sandbox simulates the catalogue, so no account is needed. Observe and control the sandbox at ${sandbox.controlUrl}.\n`,
      );
    }
    const page = `http://${settings.EARSHOT_CONSOLE_LISTEN ?? consoleListen}/`;
    const welcome = () => showCommands(io, folder, page);
    const dir = flags.dir === undefined ? '' : ` --dir ${printable(flags.dir)}`;
    const farewell = `The trial has ended. To continue the trial: \`earshot setup --sandbox${dir}\`. To remove the trial: rm -r ${shown(io, folder)}`;
    const header = `${trialHeader.slice(2)}, which continues this trial.\n# Control port of the sandbox: ${addresses.control}`;
    // The page and the log name commands for the folder in which they find the trial.
    const earshot_called_as = isFoundHere(io, folder)
      ? io.env.earshot_called_as
      : nameCalledIn(folder, io);
    const named = { ...io, env: { ...io.env, earshot_called_as } };
    // A trial that continues has a past already.
    const prepare = earlier === null ? (own: Io) => fillPast(own, trialFlags) : undefined;
    const texts = { header, farewell, welcome };
    const plan = { folder, settings, dropped: [], ...texts, mayChange: true, prepare };
    await install(named, { ...plan, flags: trialFlags, version });
  } finally {
    await sandbox.close();
  }
}

function openSandbox(
  io: Io,
  { service, control, inference }: Addresses,
  { isContinued, authorityPem }: { isContinued: boolean; authorityPem: string | null },
): Promise<Sandbox> {
  return startSandbox({
    ...{ account, now: () => io.nowUs() / 1000, ratePerSecond: productsPerSecond },
    past: simulatedPast(io, pastProductsPerDay),
    ...{ modifiedShare: 0.2, deletedShare: 0.1 },
    // The log has the products of the earlier run, so new ones need other ids.
    ...(isContinued ? { seed: Math.trunc(io.random() * 2 ** 31) } : {}),
    ...{ serviceListen: service, controlListen: control, inferenceListen: inference },
    trustedCaPems: authorityPem === null ? [] : [authorityPem],
  });
}

/** Stores the past of the subscriptions that `setup` registers, and reports it. */
async function fillPast(io: Io, flags: SetupFlags): Promise<void> {
  const { subscription: name = defaultSubscriptionName, event: events = ['created'] } = flags;
  const type = flags.pull ? 'pull' : 'push';
  const one = { name, type, events, filter: filterOfFlags(flags, io) ?? '' } as const;
  const inFile = await loadSubscriptionsFile(io.workingDir);
  const subscriptions = inFile ?? [{ ...one, status: 'running' }];
  const { stored, missing } = await withStore(io, (store) => storePast(io, store, subscriptions));
  // Otherwise the log would report a lag of the index at the start.
  await catchUpIndex(loadConfig(io, dataSections));
  const setup = painter(io, io.stderr)('bold', 'setup:');
  io.stderr.write(
    `${setup} a simulated past day: ${counted(stored, 'notification')} stored, ${countText(missing)} of one hour missing. The receiver compares its log with the catalogue 30 seconds after the start, and fetches what is missing.\n`,
  );
}

/** Returns the folder of the trial: the working folder if it is one. Refuses a trial inside another trial. */
function trialFolder(io: Io, { dir }: SetupFlags): string {
  const here = resolve(io.workingDir);
  const folder =
    dir === undefined && isTrial(here) ? here : resolve(here, dir ?? trialFolderDefault);
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above)) {
    if (!isTrial(above)) continue;
    throw new AppError(
      'conflict',
      `${folder} is inside the trial ${above}. Trials cannot be nested.`,
      {
        advice: `To continue that trial: ${inFolder(io, above, 'setup --sandbox')}. For another trial, add --dir with a folder outside ${above}.`,
      },
    );
  }
  return folder;
}

/** Reads the `.env` of an earlier run; null for none. Throws `conflict` if something else wrote the file. */
function readEarlier(io: Io, folder: string) {
  const path = join(folder, '.env');
  if (!existsSync(path)) return null;
  if (!isTrial(folder)) {
    throw new AppError(
      'conflict',
      `${path} was not written by \`earshot setup --sandbox\`, so it is not replaced.`,
      { advice: 'Specify another folder: --dir trial-2.' },
    );
  }
  const text = io.readFile(path);
  const present = parseEnv(text) as Settings;
  const { EARSHOT_DATA_DIR, EARSHOT_TLS_CERT, EARSHOT_TLS_KEY, EARSHOT_PROBE_CA, ...rest } =
    present;
  // Paths are set again, as the folder may have moved.
  const settings = Object.entries(rest).filter(([name]) => name.startsWith('EARSHOT_'));
  const addresses = {
    service: hostOf(present.EARSHOT_CATALOGUE_URL),
    control: controlLine.exec(text)?.[1],
    inference: hostOf(present.EARSHOT_INFERENCE_URL),
    listen: present.EARSHOT_LISTEN,
    consoleListen: present.EARSHOT_CONSOLE_LISTEN,
  };
  const known = Object.entries(addresses).filter(([, address]) => address !== undefined);
  return {
    settings: Object.fromEntries(settings),
    addresses: Object.fromEntries(known) as Partial<Addresses>,
  };
}

/** Returns the flags of the subscription: as given, else as last registered, else SENTINEL-2. */
async function filterFlags(flags: SetupFlags, dataDir: string): Promise<Partial<SetupFlags>> {
  if (isChosen(flags.texts) || (await loadSubscriptionsFile(dirname(dataDir))) !== null) return {};
  const first = { collection: collection('SENTINEL-2').tree };
  if (!existsSync(join(dataDir, databaseFileName))) return first;
  const reader = openStoreReader(dataDir);
  try {
    const registered = await reader.administration.registrations();
    const subscription = flags.subscription ?? registered[0]?.name;
    const isKnown = registered.some(({ name }) => name === subscription);
    return isKnown && subscription !== undefined ? { subscription } : first;
  } finally {
    await reader.close();
  }
}

function trialRuns(io: Io, folder: string, running: RunningNote | 'unknown'): AppError {
  return new AppError('conflict', `The trial in ${folder} is already running.`, {
    details: [
      `To use the trial: ${inFolder(io, folder, 'status')}. To stop the trial: ${stopText(running)}.`,
      'For a second trial, add --dir trial-2.',
    ],
  });
}

/** Returns the usual ports of a sandbox and a receiver, or free ones if they are in use. */
async function newAddresses(): Promise<Addresses> {
  const at = async (port: number) => `127.0.0.1:${(await isFree(port)) ? port : await anyPort()}`;
  const [service, control, inference] = [await at(8091), await at(8090), await at(8092)];
  return { service, control, inference, listen: await at(8443), consoleListen: await at(8080) };
}

/** Throws `conflict` if another program now uses a port of the earlier run. */
async function requireFreePorts(addresses: Addresses): Promise<void> {
  for (const address of Object.values(addresses)) {
    // The private listener may be `off`.
    if (Number.isNaN(portOf(address)) || (await isFree(portOf(address)))) continue;
    throw new AppError(
      'conflict',
      `Another program uses port ${portOf(address)} of this trial, so nothing was started.`,
      {
        advice: 'Stop that program, or start another trial: --dir trial-2.',
      },
    );
  }
}

const isFree = async (port: number) => (await listenOnce(port)) !== null;

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
  const commands = ['status', 'query products --limit 5', 'tail'];
  const lines = [...commands.map((command) => inFolder(io, folder, command)), page];
  io.stderr.write(`In a second terminal, all commands work on this trial, as does the web page:
${lines.map((line) => `  ${paint('bold', line)}\n`).join('')}`);
}

/** Returns a shell command that runs an earshot command on the trial. */
function inFolder(io: Io, folder: string, command: string): string {
  const isHere = isFoundHere(io, folder);
  const program = printable(nameCalledIn(isHere ? io.workingDir : folder, io));
  return `${isHere ? '' : `cd ${shown(io, folder)} && `}${program} ${command}`;
}

/** True if commands in the working folder use this trial. */
function isFoundHere(io: Io, folder: string): boolean {
  const here = resolve(io.workingDir);
  return (
    folder === here ||
    (!hasSettings(io) && dirname(folder) === here && [folder, null].includes(findTrial(here)))
  );
}

function shown(io: Io, folder: string): string {
  return printable(relative(io.workingDir, folder) || folder);
}

const portOf = (address: string) => Number(address.split(':').at(-1));

const hostOf = (url: string | undefined) => URL.parse(url ?? '')?.host;

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
