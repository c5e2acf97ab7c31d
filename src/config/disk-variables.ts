/** The row of the table that says how much of the disk is left free. */
import { byteSize } from './value-schemas.ts';
import { variable } from './variable.ts';

export const diskVariables = {
  diskReserve: variable({
    name: 'EARSHOT_DISK_RESERVE',
    schema: byteSize,
    description:
      'How much of the disk of the data directory is kept free: with less, notifications are refused (503) until there is room again. 256 MiB unless told otherwise, and on a disk below 5 GiB a twentieth of it. 0 for no such limit.',
    example: '1GiB',
  }),
} as const;
