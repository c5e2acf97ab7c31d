/** Asks in plain questions which products a subscription is for. */
import type { Io } from '../io.ts';
import { readAreaFile } from '../product-flags.ts';
import { askUntil, isYes, type ReadFlag, type SetupFlags } from './questions.ts';

const boxPattern = /^[\s\d.+-]+(,[\s\d.+-]+){3}$/;

/**
 * Asks which products a subscription is for, and fills `flags`. Returns the missing flags, one line each, where
 * there is no terminal to ask on.
 */
export async function askFilter(
  io: Pick<Io, 'ask' | 'stderr' | 'readFile'>,
  flags: SetupFlags,
  readFlag: ReadFlag,
): Promise<string[]> {
  const ask = async (flag: 'collection' | 'type' | 'cloudBelow' | 'subscription', text: string) => {
    const read = (answer: string) => (answer === '' ? undefined : readFlag(flag, answer));
    const value = await askUntil(io, text, { read });
    if (value !== null && value !== undefined) Object.assign(flags, { [flag]: value });
    return value;
  };
  for (;;) {
    const collection = await ask(
      'collection',
      'Which products? Collections, such as SENTINEL-2 or S1,S3 (empty: all)',
    );
    if (collection === null) {
      return ['--collection <names>  which products (or another flag of the filter, or --filter)'];
    }
    await ask('type', 'Product types, such as S2MSI2A (empty: all)');
    await askArea(io, flags, readFlag);
    await ask('cloudBelow', 'Cloud cover below this percentage (empty: any)');
    if (isChosen(flags)) break;
    const every = await askUntil(io, everyProduct, { read: isYes });
    if (every) {
      flags.filter = '';
      break;
    }
  }
  await ask('subscription', 'Name of the subscription [default]');
  return [];
}

const everyProduct =
  'That is every product of the catalogue, tens of thousands a day. Is that what you want? (y/n)';

/** True where the flags choose products, even if it is all of them. */
export function isChosen(flags: SetupFlags): boolean {
  const { filter, collection, type, platform, tile, cloudBelow, bbox, name } = flags;
  const area = flags.area ?? flags.intersects;
  const all = [filter, collection, type, platform, tile, cloudBelow, bbox, area, name];
  return all.some((flag) => flag !== undefined);
}

async function askArea(
  io: Pick<Io, 'ask' | 'stderr' | 'readFile'>,
  flags: SetupFlags,
  readFlag: ReadFlag,
): Promise<void> {
  await askUntil(
    io,
    'Where? west,south,east,north, such as 5.5,45,11,48, or a GeoJSON file (empty: everywhere)',
    {
      read: (text) => {
        if (text === '') return;
        if (boxPattern.test(text)) {
          Object.assign(flags, { bbox: readFlag('bbox', text) });
          return;
        }
        readAreaFile('--area', text, io);
        flags.area = text;
      },
    },
  );
}
