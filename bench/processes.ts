/** Memory and processor time of other processes (from Linux /proc), and free ports. */

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';

/** Unit of processor time in /proc: 10 ms. */
const tickMs = 10;

/** Sizes in bytes. */
export interface Memory {
  /** Resident now (VmRSS). */
  readonly residentBytes: number;
  /** Maximum resident so far (VmHWM). */
  readonly peakResidentBytes: number;
}

/** Returns the memory of a process; undefined without /proc or after its end. */
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

/** Returns the number of threads of a process; undefined like `readMemory`. */
export function readThreads(processId: number): number | undefined {
  const digits = /^Threads:\s*(\d+)$/m.exec(readProcessFile(processId, 'status') ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits);
}

/** Returns the processor time of a process on all cores, ms; undefined like `readMemory`. */
export function readCpuMs(processId: number): number | undefined {
  const text = readProcessFile(processId, 'stat');
  // The program name in parentheses may contain spaces; user and system time follow it.
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

/** Samples the memory of a process now, at each interval, and at the end. */
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

/** Returns a free loopback port. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
