/** How much room is on the disk of the data directory, and from where on that is too little. */

export interface DiskRoom {
  /** What the user that asks may still write. */
  freeBytes: number;
  totalBytes: number;
  /** While less is free, nothing is taken in. 0 where there is no such limit. */
  reserveBytes: number;
}

const gibibyte = 2 ** 30;

/** Below these a person is told: well before intake ends, on a disk of any size. */
export function diskLevels({ totalBytes, reserveBytes }: Omit<DiskRoom, 'freeBytes'>): {
  warningBytes: number;
  criticalBytes: number;
} {
  const tenth = totalBytes / 10;
  return {
    warningBytes: Math.max(Math.min(5 * gibibyte, tenth), 3 * reserveBytes),
    criticalBytes: Math.max(Math.min(gibibyte, tenth), 2 * reserveBytes),
  };
}
