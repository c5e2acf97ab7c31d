/** Memory and processor time of another process, as Linux tells them. */
import { readFileSync } from 'node:fs';

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
  const residentBytes = kibibytesOf(status, 'VmRSS');
  const peakResidentBytes = kibibytesOf(status, 'VmHWM');
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

function kibibytesOf(status: string | undefined, name: string): number | undefined {
  const digits = new RegExp(`^${name}:\\s*(\\d+) kB`, 'm').exec(status ?? '')?.[1];
  return digits === undefined ? undefined : Number(digits) * 1024;
}

function readProcessFile(processId: number, name: string): string | undefined {
  try {
    return readFileSync(`/proc/${processId}/${name}`, 'utf8');
  } catch {
    return undefined;
  }
}
