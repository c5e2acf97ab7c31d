/** The doctor's check of this machine's clock, against those of the services it talks to. */
import type { Finding } from '../../domain/finding.ts';

/** Beyond the first the user is warned; beyond the second certificates and one-time codes fail. */
const secondsWarn = 30;
const secondsFail = 300;

const timeoutMs = 10_000;
const advice = 'Let the clock be set by itself: `timedatectl set-ntp true`.';

/** Compares with the `Date` header of the first of the URLs that answers, whatever it answers. */
export async function checkClock(options: {
  urls: readonly string[];
  fetch: typeof fetch;
  nowUs: () => number;
}): Promise<Finding[]> {
  const check = 'clock';
  for (const url of options.urls) {
    const ahead = await secondsAhead(url, options);
    if (ahead === null) continue;
    const seconds = Math.abs(ahead);
    const { host } = new URL(url);
    if (seconds <= secondsWarn) {
      return [{ check, state: 'pass', message: `It agrees with that of ${host}.` }];
    }
    const side = ahead > 0 ? 'ahead of' : 'behind';
    const message = `It is ${inUnits(seconds)} ${side} that of ${host}.`;
    return [{ check, state: seconds > secondsFail ? 'fail' : 'warn', message, advice }];
  }
  const message = 'Neither the catalogue nor the identity provider could be asked for the time.';
  return [{ check, state: 'skipped', message }];
}

/** How far our clock is ahead; null when the service does not tell. */
async function secondsAhead(
  url: string,
  { fetch: send, nowUs }: { fetch: typeof fetch; nowUs: () => number },
): Promise<number | null> {
  const askedUs = nowUs();
  try {
    const response = await send(url, {
      method: 'HEAD',
      redirect: 'manual',
      // A cache would hand out the time of an earlier answer.
      headers: { 'Cache-Control': 'no-store' },
      signal: AbortSignal.timeout(timeoutMs),
    });
    const thereMs = Date.parse(response.headers.get('Date') ?? '');
    if (Number.isNaN(thereMs)) return null;
    const agedMs = (Number(response.headers.get('Age')) || 0) * 1000;
    // Midway between question and answer.
    const hereMs = (askedUs + nowUs()) / 2000;
    return (hereMs - thereMs - agedMs) / 1000;
  } catch {
    return null;
  }
}

function inUnits(seconds: number): string {
  return seconds < 120 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} minutes`;
}
