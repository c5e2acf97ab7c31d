/** The library's public face. */
export { defineConfig, type EarshotConfig } from './config/subscriptions-file.ts';
