/** An authority that has a staging directory: two of Pebble. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { freePebblePorts, type PebbleOptions, startPebble } from '../../helpers/pebble.ts';
import { openProgram, watchRequests } from './pebble-world.ts';

/** Addresses for a name: at the first one nobody answers. */
export const elsewhere = '127.0.0.2';
export const here = '127.0.0.1';

/** The two look at the same ports, and know nothing of each other. */
export async function startBoth(options: { staging?: PebbleOptions } = {}) {
  const pebble = await startPebble();
  const { http, tls } = pebble.ports;
  const ports = { ...(await freePebblePorts()), http, tls };
  const staging = await startPebble({ ...options.staging, ports });
  const settings = { extraCaPem: `${pebble.caPem}\n${staging.caPem}` };
  const stagingUrl = staging.directoryUrl;
  const program = openProgram(pebble, { settings, stagingUrl });
  const requests = { production: watchRequests(pebble), staging: watchRequests(staging) };
  const setAddress = (ip: string) =>
    Promise.all([pebble, staging].map((one) => one.setAddress(ip)));
  const filesOf = () => readdirSync(join(program.dataDir, 'acme')).sort();
  return { pebble, staging, program, requests, setAddress, filesOf };
}
