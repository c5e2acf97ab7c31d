/** The endpoint probe, with the authorities of EARSHOT_PROBE_CA besides the public ones. */
import { createEndpointProbe, type ProbeEndpoint } from '../admin/endpoint/endpoint-probe.ts';
import { AppError } from '../domain/app-error.ts';
import type { Io } from './io.ts';

/** Without a file, only the public authorities are trusted. Throws `configuration` for one that cannot be read. */
export function probeTrusting(
  file: string | undefined,
  { readFile }: Pick<Io, 'readFile'>,
): ProbeEndpoint {
  if (file === undefined) return createEndpointProbe({});
  let pem: string;
  try {
    pem = readFile(file);
  } catch (cause) {
    throw new AppError('configuration', `EARSHOT_PROBE_CA names ${file}, which cannot be read.`, {
      advice: 'Name a PEM file, or unset it.',
      cause,
    });
  }
  return createEndpointProbe({ extraCaPems: [pem] });
}
