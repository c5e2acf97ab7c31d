/**
 * Tests with whole programs, one for each promise to users: `npm run test:promises`, a part of `.ci/run`. The table in
 * CONTRIBUTING.md names each promise. All other slow tests run with `npm run test:thorough` only.
 */
export const promises = [
  'test/e2e/kill.slow.test.ts',
  'test/e2e/disk-full.slow.test.ts',
  'test/receiver/graceful-stop.slow.test.ts',
  'test/e2e/pull-kill.slow.test.ts',
  'test/e2e/sinks-kill.slow.test.ts',
  'test/e2e/feed-kill.slow.test.ts',
  'test/e2e/reconcile-kill.slow.test.ts',
  'test/e2e/cut-registration.slow.test.ts',
  'test/e2e/rotation.slow.test.ts',
  'test/e2e/certificate-stop.slow.test.ts',
  'test/e2e/move.slow.test.ts',
  'test/e2e/backup-load.slow.test.ts',
  'test/e2e/no-secrets.slow.test.ts',
  'test/e2e/behind-proxy.slow.test.ts',
  'test/e2e/real-clients.slow.test.ts',
  'test/e2e/real-clients-stac.slow.test.ts',
  'test/e2e/download.slow.test.ts',
  'test/e2e/package.slow.test.ts',
  'test/deploy/hosts.slow.test.ts',
  'test/deploy/image.slow.test.ts',
  'test/e2e/demo.slow.test.ts',
  'test/features/shared-log/kill-receivers.slow.test.ts',
  'test/core/page/all-pages.slow.test.ts',
  'test/core/page/frame.slow.test.ts',
  'test/features/live/listener.slow.test.ts',
  'test/core/page/operation-pages.slow.test.ts',
  'test/features/certificate/command.slow.test.ts',
];
