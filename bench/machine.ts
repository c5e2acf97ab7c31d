/** Says what the figures were measured on. */
import { statfsSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

/** Figures mean nothing without it. */
export interface Machine {
  readonly cores: number;
  readonly cpuModel: string;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
  /** True when the data folders are in memory, where waiting for the disk costs nothing. */
  readonly dataInMemory: boolean;
}

/** Linux' mark of a file system that lives in memory (tmpfs). */
const tmpfsType = 0x01021994;

/** Describes this machine; `dataFolder` is where the databases are written. */
export function describeMachine(dataFolder: string): Machine {
  return {
    cores: availableParallelism(),
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    memoryBytes: totalmem(),
    system: `${type()} ${release()}`,
    node: process.version,
    dataInMemory: statfsSync(dataFolder).type === tmpfsType,
  };
}
