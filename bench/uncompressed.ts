/** Loaded before earshot, it has every body kept as it came: nothing gets smaller. For the benchmark alone. */
import { syncBuiltinESMExports } from 'node:module';
import zlib from 'node:zlib';

Object.assign(zlib, { zstdCompressSync: (bytes: Buffer) => bytes });
syncBuiltinESMExports();
