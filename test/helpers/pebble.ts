/**
 * Pebble, an ACME server for tests, and its challenge test server for names: real programs on
 * loopback.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { KeyPair } from '../../src/core/http/listener.ts';
import { freePorts } from './free-ports.ts';
import { writeKeyPair } from './key-pair.ts';
import { sendRequest } from './send-request.ts';

const programs = { pebble: '/usr/bin/pebble', names: '/usr/bin/pebble-challtestsrv' };

/** Debian's package `pebble`. Required in CI: without it, tests fail instead of being skipped. */
export const hasPebble =
  process.env.CI !== undefined || Object.values(programs).every((program) => existsSync(program));

export interface PebbleOptions {
  /** Percentage of valid nonces that are refused; default: none. */
  nonceReject?: number;
  /** Lifetime of issued certificates. */
  validitySeconds?: number;
  /** Keys of external accounts by id; when set, each account needs one. */
  eabKeys?: Record<string, string>;
}

interface PebblePorts {
  acme: number;
  management: number;
  dns: number;
  dnsManagement: number;
  /** Ports to which challenges are sent, instead of 80 and 443. */
  http: number;
  tls: number;
}

export interface Pebble {
  directoryUrl: string;
  ports: PebblePorts;
  /** PEM: the authority for its own HTTPS. */
  caPem: string;
  /** PEM: the root of issued certificates; different after each start. */
  readRoot(): Promise<string>;
  /** Stops it; its state is lost. */
  stop(): Promise<void>;
  /** Starts it again on the same ports. */
  start(): Promise<void>;
}

/** Resolves when it responds; stopped when the test has finished. */
export async function startPebble(options: PebbleOptions = {}): Promise<Pebble> {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-pebble-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const ports = await freePebblePorts();
  const { caPem, files } = await writeKeyPair(folder);
  const config = join(folder, 'config.json');
  writeFileSync(config, JSON.stringify(configOf(files, ports, options)));
  const env = {
    PEBBLE_VA_NOSLEEP: '1',
    PEBBLE_AUTHZREUSE: '0',
    PEBBLE_WFE_NONCEREJECT: String(options.nonceReject ?? 0),
  };
  const names = run(programs.names, [
    ...['-dns01', `127.0.0.1:${ports.dns}`, '-management', `127.0.0.1:${ports.dnsManagement}`],
    ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''],
  ]);
  onTestFinished(names.stop);
  let pebble: ReturnType<typeof run> | undefined;
  const directoryUrl = `https://localhost:${ports.acme}/dir`;
  const start = async () => {
    pebble = run(programs.pebble, ['-config', config, '-dnsserver', `127.0.0.1:${ports.dns}`], env);
    await until(() => sendRequest({ url: directoryUrl, ca: caPem }));
  };
  const stop = async () => pebble?.stop();
  onTestFinished(stop);
  await start();
  return {
    directoryUrl,
    ports,
    caPem,
    readRoot: async () => {
      const url = `https://localhost:${ports.management}/roots/0`;
      return (await sendRequest({ url, ca: caPem })).body;
    },
    stop,
    start,
  };
}

function configOf({ cert, key }: KeyPair, ports: PebblePorts, options: PebbleOptions) {
  const { eabKeys, validitySeconds } = options;
  return {
    pebble: {
      listenAddress: `127.0.0.1:${ports.acme}`,
      managementListenAddress: `127.0.0.1:${ports.management}`,
      certificate: cert,
      privateKey: key,
      httpPort: ports.http,
      tlsPort: ports.tls,
      ocspResponderURL: '',
      externalAccountBindingRequired: eabKeys !== undefined,
      ...(eabKeys === undefined ? {} : { externalAccountMACKeys: eabKeys }),
      ...(validitySeconds === undefined ? {} : { certificateValidityPeriod: validitySeconds }),
    },
  };
}

async function freePebblePorts(): Promise<PebblePorts> {
  const [acme = 0, management = 0, dns = 0, dnsManagement = 0, http = 0, tls = 0] =
    await freePorts(6);
  return { acme, management, dns, dnsManagement, http, tls };
}

function run(program: string, argv: string[], env: Record<string, string> = {}) {
  const child = spawn(program, argv, { env: { PATH: process.env.PATH, ...env }, stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.on('exit', () => resolve()));
  return {
    stop: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function until<Value>(attempt: () => Promise<Value>): Promise<Value> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (tries >= 200) throw error;
      await delay(25);
    }
  }
}
