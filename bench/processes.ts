/** Other processes: their memory and processor time, as Linux tells them, and ports for them. */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Linux counts processor time in hundredths of a second for every program, whatever its own tick. */
const tickMs = 10;

/** Sizes in bytes. */
export interface Memory {
  /** Resident now (VmRSS). */
  readonly residentBytes: number;
  /** The most that was ever resident (VmHWM). */
  readonly peakResidentBytes: number;
}

/** Memory of a process, or undefined where /proc does not exist or the process has ended. */
export function readMemory(processId: number): Memory | undefined {
  const status = readProcessFile(processId, 'status');
  const bytesOf = (name: string) => {
    const digits = new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status ?? '')?.[1];
    return digits === undefined ? undefined : Number(digits) * 1024;
  };
  const [residentBytes, peakResidentBytes] = [bytesOf('VmRSS'), bytesOf('VmHWM')];
  if (residentBytes === undefined || peakResidentBytes === undefined) return undefined;
  return { residentBytes, peakResidentBytes };
}

/** Processor time a process has used on all cores, ms; undefined as for `readMemory`. */
export function readCpuMs(processId: number): number | undefined {
  const text = readProcessFile(processId, 'stat');
  // The program's name stands in parentheses and may hold spaces; user and system time follow it.
  const fields = text?.slice(text.lastIndexOf(')') + 2).split(' ');
  if (fields === undefined) return undefined;
  return (Number(fields[11]) + Number(fields[12])) * tickMs;
}

function readProcessFile(processId: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${processId}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}

/** Looks at the memory of a process now, again and again, and when it is stopped. */
export function watchMemory(
  processId: number,
  intervalMs: number,
  onSample?: (memory: Memory) => void,
): { stop(): Memory[] } {
  const samples: Memory[] = [];
  const sample = () => {
    const memory = readMemory(processId);
    if (memory === undefined) return;
    samples.push(memory);
    onSample?.(memory);
  };
  sample();
  const timer = setInterval(sample, intervalMs);
  return {
    stop: () => {
      clearInterval(timer);
      sample();
      return samples;
    },
  };
}

/** A port of loopback that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
