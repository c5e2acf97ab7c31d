/** Opens a store in a read-only file, makes the file writable, and prints both results. */
import { chmodSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { AppError } from '../../src/core/terms/app-error.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { openStore } from '../helpers/store.ts';

const dataDir = process.argv[2] ?? '';
const open = () => openStore({ dataDir });

const refusal = await open().catch((error: unknown) => error);
const start =
  refusal instanceof AppError ? { code: refusal.code, message: refusal.message } : 'opened';
for (const file of readdirSync(dataDir)) chmodSync(join(dataDir, file), 0o600);
const store = await open();
const afterPermission = await store.accept(delivery(notification(2)));
await store.close();
process.stdout.write(JSON.stringify({ start, afterPermission }));
