/** Decodes bodies that came with a Content-Encoding (RFC 9110, 8.4). */
import { promisify } from 'node:util';
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  inflate,
  inflateRaw,
  inflateRawSync,
  inflateSync,
} from 'node:zlib';
import { AppError } from '../domain/app-error.ts';
import type { Fault } from '../domain/notification.ts';
import type { EncodedBody } from '../domain/ports.ts';

/** For `Accept-Encoding` in the answer to any other. */
export const knownEncodings = 'gzip, deflate, br';

/** Senders use one; each takes a pass over the body. */
const encodingsMax = 3;

/** Maximum size of a decoded body; the same as that of a body as it comes. */
const contentBytesMax = 2 ** 20;
const bounds = { maxOutputLength: contentBytesMax };

type Decode = (bytes: Uint8Array, options: typeof bounds) => Promise<Uint8Array>;
type DecodeSync = (bytes: Uint8Array, options: typeof bounds) => Uint8Array;
interface Decoder {
  decode: Decode;
  decodeSync: DecodeSync;
}

const gzip: readonly Decoder[] = [{ decode: promisify(gunzip), decodeSync: gunzipSync }];
/** Each entry is tried in turn: `deflate` is zlib's format, and many senders leave its frame out. */
const decoders: ReadonlyMap<string, readonly Decoder[]> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  [
    'deflate',
    [
      { decode: promisify(inflate), decodeSync: inflateSync },
      { decode: promisify(inflateRaw), decodeSync: inflateRawSync },
    ],
  ],
  ['br', [{ decode: promisify(brotliDecompress), decodeSync: brotliDecompressSync }]],
]);

/** The encodings of a header in the order in which they were applied; null where the body is plain. */
export function encodingIn(header: string | undefined): string | null {
  if (header === undefined) return null;
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  const applied = names.filter((name) => name !== '' && name !== 'identity');
  return applied.length === 0 ? null : applied.join(', ');
}

/** Decodes on the thread pool. Rejects with `too_large` for what is larger than the limit once it is decoded. */
export async function decodeBody(bytes: Uint8Array, encoding: string): Promise<EncodedBody> {
  const chain = decodersOf(encoding);
  if (chain === null) return { encoding, content: unsupported };
  let content = bytes;
  for (const alternatives of chain) {
    let decoded: Uint8Array | undefined;
    for (const { decode } of alternatives) {
      decoded = await decode(content, bounds).catch(refuseTooLarge);
      if (decoded !== undefined) break;
    }
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

/** Does the same on this thread, for stored bodies. */
export function decodeStored(bytes: Uint8Array, encoding: string): EncodedBody {
  const chain = decodersOf(encoding);
  if (chain === null) return { encoding, content: unsupported };
  let content = bytes;
  for (const alternatives of chain) {
    const decoded = firstDecoded(content, alternatives);
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

function firstDecoded(bytes: Uint8Array, alternatives: readonly Decoder[]): Uint8Array | undefined {
  for (const { decodeSync } of alternatives) {
    try {
      return decodeSync(bytes, bounds);
    } catch (error) {
      refuseTooLarge(error);
    }
  }
  return undefined;
}

/** The last that was applied comes first. */
function decodersOf(encoding: string): (readonly Decoder[])[] | null {
  const chain = encoding.split(', ').map((name) => decoders.get(name));
  if (chain.length > encodingsMax) return null;
  const known = chain.filter((one) => one !== undefined);
  return known.length === chain.length ? known.toReversed() : null;
}

function refuseTooLarge(error: unknown): undefined {
  if (
    error instanceof RangeError ||
    (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
  ) {
    throw new AppError('too_large', `The decoded body is larger than ${contentBytesMax} bytes.`);
  }
  return undefined;
}

const unsupported: Fault = {
  code: 'unsupported-encoding',
  index: null,
  message: `The Content-Encoding is not supported. Send one of ${knownEncodings}, or none.`,
};
const undecodable: Fault = {
  code: 'undecodable-body',
  index: null,
  message: 'The body cannot be decoded as its Content-Encoding says.',
};
