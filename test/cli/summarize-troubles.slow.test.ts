/** `earshot summarize` with problems: arguments, settings, inference service, budget. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { otherProject } from '../../src/sandbox/live-settings.ts';
import { nowUs, runCommand } from './fake-io.ts';
import { createSummaryContext, model } from './summary-context.ts';

describe('a usage error', () => {
  it.each([
    ['--digest daily', /Allowed choices are hour, day, week/],
    ['--since tomorrow', /'tomorrow' is invalid\. Use 90m, 24h, 7d or a date such as/],
    ['--each --digest day', /'--digest <window>' cannot be used with option '--each'/],
    ['--retry', /'--retry <all\|ids>' argument missing\. Use "all", or ids from .*: 12,15\.\n/],
    ['--retry newest', /Use "all", or ids from `earshot query summaries`: 12,15\./],
    ['--retry all --dry-run', /cannot be used with/],
    ['--drop oldest', /Use "all", or ids from `earshot query summaries`: 12,15\./],
    ['--drop all --each', /cannot be used with/],
    ['--drop all --retry all', /cannot be used with/],
    ['--drop all', /There is no database in \/nonexistent\/earshot.*EARSHOT_DATA_DIR/],
    ['--limit 0', /Use a whole number, 1 or more/],
    ['each', /too many arguments/],
    ['--since 24h --filter x', /--since and --filter, add --each or --digest/],
    ['--each --since 2027-01-01', /--since must be earlier than --until and earlier than now/],
    ['--digest day --since 1h --until 2h', /is not after --since/],
    ['--digest hour --since 365d', /8760 digests, and each digest needs a request/],
    ['--each', /There is no database in \/nonexistent\/earshot.*EARSHOT_DATA_DIR/],
    ['--dry', /unknown option '--dry'[\s\S]*earshot summarize --help/],
  ])('%s exits 2 with a correction', async (line, message) => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    const { code, out, err } = await runCommand(['summarize', ...line.split(' ')], { env });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(message);
  });

  it('in a filter is shown with its position, before anything is opened', async () => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot' };
    const argv = ['summarize', '--each', '--filter', 'Naem'];
    const { code, out, err } = await runCommand(argv, { env });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/The filter is not valid for Products[\s\S]*Naem\n\s*\^/);
  });
});

describe('a service that requests a delay', () => {
  /** Returns a running clock that starts at the usual time of the tests. */
  function runningClock() {
    const beginMs = performance.now();
    return () => nowUs + Math.round((performance.now() - beginMs) * 1_000);
  }

  it.each([429, 503])(
    'with %i and a short Retry-After is retried after that time, and the work completes',
    async (status) => {
      const context = await createSummaryContext();
      let refusals = 2;
      const busy = async (...request: Parameters<typeof fetch>) => {
        refusals -= 1;
        if (refusals < 0) return fetch(...request);
        return new Response('{}', { status, headers: { 'retry-after': '1' } });
      };
      const how = { nowUs: runningClock(), fetch: busy };
      const { code, err } = await context.summarize(['--each'], how);
      expect(err).toMatch(/^The inference service requested a pause: continuing in 1 s\.\n/);
      expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('5 written.') });
      expect(context.sandbox.inference.totals()).toMatchObject({
        distinct: 5,
        outcomes: { answered: 5 },
      });
    },
  );

  it('without a time is retried with growing delays, before the budget is spent', async () => {
    const context = await createSummaryContext();
    // Measured from the first request: the time before it depends on the machine.
    let refusedUntilMs: number | undefined;
    let refused = 0;
    const busy = async (...request: Parameters<typeof fetch>) => {
      refusedUntilMs ??= performance.now() + 2_500;
      if (performance.now() > refusedUntilMs) return fetch(...request);
      refused += 1;
      return new Response('{}', { status: 429, headers: { 'retry-after': '0' } });
    };
    const how = { nowUs: runningClock(), fetch: busy };
    const { code, err } = await context.summarize(['--each'], how);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining('5 written.') });
    expect(err).toMatch(/continuing in 1 s\.\n[\s\S]*continuing in 2 s\.\n/);
    expect(refused).toBeGreaterThan(1);
    expect(refused).toBeLessThan(8);
  });

  it('shows the remaining time on a terminal', async () => {
    const context = await createSummaryContext();
    context.sandbox.inference.change({ retryAfterSeconds: 2, next: { rateLimited: 1 } });
    const { code, err } = await context.summarize(['--each'], {
      nowUs: runningClock(),
      isTTY: true,
    });
    expect(code).toBe(0);
    expect(err).toMatch(
      /\rThe inference service requested a pause: continuing in 2 s .*\r.*in 1 s /,
    );
  });

  it('of more than two minutes is not retried; a later run requests only what is missing', async () => {
    const context = await createSummaryContext();
    await context.summarize(['--each', '--limit', '2']);
    context.sandbox.inference.change({ retryAfterSeconds: 121, next: { rateLimited: 2 } });
    const long = await context.summarize(['--each']);
    expect(long.code).toBe(1);
    expect(long.err).toMatch(
      /received too many requests \(429\).*Retry in 3 minutes\. If .* next retry 2026-05-02 12:0\d UTC/,
    );
    const later = await context.summarize(['--each'], { nowUs: () => nowUs + 600_000_000 });
    expect(later.code).toBe(0);
    expect(context.sandbox.inference.totals()).toMatchObject({
      distinct: 5,
      outcomes: expect.objectContaining({ answered: 5 }),
    });
  });
});

describe('settings that the service rejects', () => {
  it('are reported with advice and exit code 1, and leave the rest queued', async () => {
    const context = await createSummaryContext();
    for (const [env, message] of [
      [{ EARSHOT_INFERENCE_API_KEY: 'no-key' }, /does not accept the key \(401\)/],
      [
        { EARSHOT_INFERENCE_API_KEY: otherProject.key },
        /is not available to the project.*Set EARSHOT_INFERENCE_MODEL to one of these: mistralai\//,
      ],
      [{ EARSHOT_INFERENCE_URL: 'http://127.0.0.1:9' }, /127\.0\.0\.1:9/],
    ] as const) {
      const { code, out, err } = await context.summarize(['--each'], { env });
      expect({ env, code, out }).toEqual({ env, code: 1, out: '' });
      expect(err).toMatch(message);
      // Reported once for all failed requests.
      expect(err.match(/inference service/gi)).toHaveLength(1);
      expect(err).toMatch(
        /\. 5 waiting; next retry 2026-05-02 12:\d\d UTC, .*`earshot summarize`\.\n$/,
      );
      expect(err).not.toContain('no-key');
    }
    expect(context.sandbox.inference.totals().distinct).toBe(0);
    const waiting = await context.summaries('--state', 'waiting');
    expect(waiting).toHaveLength(5);
    // Until then, readers see the text made of the facts.
    const tried = waiting.filter(({ error }) => error !== null);
    expect(tried[0]).toMatchObject({ model: null, text: expect.stringMatching(/^This .*product/) });
  });

  it('are refused before anything is opened when they contradict each other', async () => {
    const context = await createSummaryContext();
    const env = { EARSHOT_INFERENCE_MODEL: '', EARSHOT_SUMMARY: 'all', EARSHOT_DATA_DIR: '' };
    const { code, err } = await context.summarize([], { env });
    expect(code).toBe(2);
    expect(err).toContain('EARSHOT_INFERENCE_API_KEY is set, but EARSHOT_INFERENCE_MODEL is not.');
    expect(err).toContain('EARSHOT_SUMMARY: must be ');
  });
});

describe('the budget', () => {
  it('is kept: the rest stays queued, the limit is named, and the exit code is 0', async () => {
    const context = await createSummaryContext();
    const env = { EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '2' };
    const { code, err } = await context.summarize(['--each'], { env });
    expect(code).toBe(0);
    expect(err).toMatch(
      /^2 written\. 3 waiting: the budget of 2 requests an hour \(EARSHOT_SUMMARY_REQUESTS_PER_HOUR\) is used up until 2026-05-02 13:00 UTC\. Then .*`earshot summarize`\.\n$/,
    );
    const shown = await context.earshot(['query', 'summaries', '--state', 'waiting'], { env });
    expect(shown.out.match(/ {2}#\d+ queued\n/g)?.length).toBeGreaterThan(0);
    expect(shown.out).toContain('waiting, next retry 2026-05-02 13:00 UTC\n');
    expect(shown.err).toMatch(
      /^Queued summaries are waiting\. .* 2 requests an hour \(EARSHOT_SUMMARY_.*\)\. Next attempt: 2026-05-02 13:00 UTC\.\n$/,
    );
    expect(context.sent).toHaveLength(2);
    const later = () => Date.UTC(2026, 4, 2, 13, 1) * 1000;
    expect((await context.summarize([], { env, nowUs: later })).err).toMatch(
      /^2 written\. 1 waiting: /,
    );
    const none = { EARSHOT_SUMMARY_TOKENS_PER_DAY: '0' };
    const ended = await context.summarize(['--each', '--limit', '4', '--json'], { env: none });
    expect(ended.code).toBe(0);
    // Counts this run only: one summary of the previous run is still queued.
    expect(ended.err).toMatch(
      /^(?:\d already present\. )?\d waiting: nothing is sent while EARSHOT_SUMMARY_TOKENS_PER_DAY is 0\.\n$/,
    );
    expect(context.sent).toHaveLength(4);
  });
});

describe('a failed summary', () => {
  it('is shown with its reason, exits 1, and is retried by id or with all', async () => {
    const context = await createSummaryContext({ faults: { emptyContent: 1 } });
    let minutes = 0;
    const nowUs = () => Date.UTC(2026, 4, 2, 12, minutes) * 1000;
    const first = await context.summarize(['--each', '--limit', '2'], { nowUs });
    expect(first).toMatchObject({ code: 0, out: '' });
    expect(first.err).toMatch(
      /^The inference .*returned no text.* 2 waiting; next retry 2026-05-02 12:01 UTC, by/,
    );
    minutes = 10;
    await context.summarize([], { nowUs });
    minutes = 20;
    const last = await context.summarize([], { nowUs });
    expect(last.code).toBe(1);
    expect(last.err).toBe('earshot: 2 failed.\n');
    expect(last.out).toMatch(/ {2}failed\n {2}This .*\n {2}.*returned no text/);

    context.sandbox.inference.change({ faults: { emptyContent: 0 } });
    const [newest] = await context.summaries('--state', 'failed');
    const unknown = await context.summarize(['--retry', '99'], { nowUs });
    expect(unknown).toMatchObject({ code: 0, out: '' });
    expect(unknown.err).toMatch(
      /^There is no summary #99\.\nNothing to retry. Only failed and dropped summaries, or unverified ones named by id,/,
    );
    const one = await context.summarize(['--retry', `${newest?.id},99`], { nowUs });
    const report = '1 to be retried.\nThere is no summary #99.\n1 written.\n';
    expect(one).toMatchObject({ code: 0, err: report });
    expect(one.out).toContain(newest?.productName);
    const again = await context.summarize(['--retry', `${newest?.id}`], { nowUs });
    expect(again.err).toContain(`#${newest?.id} is done and verified.\n`);
    const all = await context.summarize(['--retry', 'all', '--json'], { nowUs });
    expect(all).toMatchObject({ code: 0, err: '1 to be retried.\n1 written.\n' });
    expect(await context.summaries('--state', 'failed')).toEqual([]);
  });
});

describe('a queued summary', () => {
  it('is dropped by id or with all, without a request to the service', async () => {
    const context = await createSummaryContext();
    const env = { EARSHOT_SUMMARY_REQUESTS_PER_HOUR: '0' };
    await context.summarize(['--each'], { env });
    const [newest] = await context.summaries('--state', 'waiting');
    const one = await context.summarize(['--drop', `${newest?.id},99`]);
    expect(one).toMatchObject({ code: 0, out: '', err: '1 dropped.\n' });
    expect(await context.summarize(['--drop', 'all'])).toMatchObject({ err: '4 dropped.\n' });
    const none = await context.summarize(['--drop', 'all']);
    expect(none).toMatchObject({ code: 0, err: expect.stringMatching(/^Nothing to drop\. Only/) });
    const dropped = await context.summaries('--state', 'dropped');
    expect(dropped).toHaveLength(5);
    expect(dropped[0]).toMatchObject({ id: newest?.id, error: 'Dropped by command.' });
    expect((await context.summarize([])).err).toMatch(/^No rule requests/);
    expect(context.sent).toEqual([]);
  });
});

describe('an unverified summary', () => {
  it('is requested again by its id', async () => {
    const context = await createSummaryContext({ next: { inventedNumber: 2 } });
    await context.summarize(['--each', '--limit', '1']);
    const [kept] = await context.summaries('--unverified');
    const all = await context.summarize(['--retry', 'all']);
    expect(all.err).toMatch(/^Nothing to retry/);
    const { code, err } = await context.summarize(['--retry', `${kept?.id}`]);
    expect({ code, err }).toEqual({ code: 0, err: '1 to be retried.\n1 written.\n' });
    expect(await context.summaries()).toMatchObject([{ id: kept?.id, verified: true }]);
  });
});

describe('concurrency', () => {
  it('shares the work with a running receiver, and reports every text', async () => {
    const context = await createSummaryContext({ answerDelayMs: 3000 });
    const env = {
      EARSHOT_LISTEN: '127.0.0.1:0',
      EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
      EARSHOT_TLS: 'off',
      EARSHOT_ENDPOINT_USERNAME: 'catalogue',
      EARSHOT_ENDPOINT_PASSWORD: 'a-long-password',
      EARSHOT_SUMMARY: 'digest',
    };
    const rule = '{ each: { filter: "Collection/Name eq \'SENTINEL2\'" } }';
    writeFileSync(
      join(context.workingDir, 'earshot.config.ts'),
      `export default { subscriptions: { alps: { summary: ${rule} } } };\n`,
    );
    const receiver = context.startWithModel(['start'], { env });
    await vi.waitFor(() => expect(receiver.err()).toContain('"summaries enabled"'), 10_000);
    const warned = receiver.err().match(/subscriptions\.alps\.summary\.each\.filter.*SENTINEL2.*/g);
    expect(warned).toMatchObject([expect.stringContaining('suspicious filter in a summary rule')]);
    // Two at a time each: the command finishes its own texts before the receiver does.
    const { code, out, err } = await context.summarize(['--each', '--limit', '4']);
    expect({ code, err }).toEqual({ code: 0, err: '4 written.\n' });
    expect(out.match(/ {2}written\n/g)).toHaveLength(4);
    const { distinct, repeated, inFlightMax } = context.sandbox.inference.totals();
    expect({ distinct, repeated }).toEqual({ distinct: 4, repeated: 0 });
    expect(inFlightMax).toBeGreaterThan(2);
    receiver.stop();
    expect((await receiver.ended).code).toBe(0);
  });

  it('ends at once when the user stops it, and leaves its unfinished texts queued', async () => {
    const context = await createSummaryContext({ next: { hang: 2 } });
    const running = context.startWithModel(['summarize', '--each']);
    await vi.waitFor(() => expect(context.sandbox.inference.totals().inFlight).toBe(2), 10_000);
    running.stop();
    const { code, out, err } = await running.ended;
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toMatch(/^earshot: Stopped\. .*5 waiting\.\n$/);
    expect((await context.summarize([])).err).toBe('5 written.\n');
    expect(await context.summaries('--state', 'done')).toMatchObject([{ model }, {}, {}, {}, {}]);
  });
});
