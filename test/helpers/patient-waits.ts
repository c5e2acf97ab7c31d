/** Gives every `vi.waitFor` the time of `expect.poll`: its default of one second fails by chance on a busy machine. */
import { vi } from 'vitest';

const { waitFor } = vi;
vi.waitFor = (callback, options) =>
  waitFor(callback, typeof options === 'number' ? options : { timeout: 30_000, ...options });
