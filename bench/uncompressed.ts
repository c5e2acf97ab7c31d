/** Disables compression in earshot if loaded before it. Only for the benchmark. */
import { syncBuiltinESMExports } from 'node:module';
import zlib from 'node:zlib';

Object.assign(zlib, { zstdCompressSync: (bytes: Buffer) => bytes });
syncBuiltinESMExports();
