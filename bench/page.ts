/** Benchmark of the web page: size, first paint and map in Chromium, and intake with viewers. */
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { hasChromium, openBrowser } from '../test/core/page/browser.ts';
import { defineBenchmark, integer, number, type Outcome, word } from './harness.ts';
import { createSetting, loadOptions } from './measure.ts';
import { type LargeReceiver, openLarge } from './page-data.ts';
import { measureMap } from './page-map.ts';
import { measureViewers } from './page-viewers.ts';
import { measureVisits } from './page-visits.ts';
import { createEndpoint } from './servers.ts';

export const viewport = { width: 1280, height: 900 };

export type PagePart = Required<Omit<Outcome, 'setting'>>;

export interface VisitOptions {
  readonly browser: Browser;
  readonly receiver: LargeReceiver;
  readonly rounds: number;
  readonly show: (text: string) => void;
}

export const benchmark = defineBenchmark({
  command: 'npm run bench:page --',
  about: `Measures the web page against a receiver in a process of its own: in Chromium, bytes and first paint of each page,
the time of the server at many products (9 GB per million), and the map with 10,000 footprints; then intake without
and with three viewers (overview, live list, map): programs that request what the pages request.`,
  options: {
    ...loadOptions,
    products: integer('products received until now at 32,000 a day', 1_000_000, 12_000),
    rate: integer('notifications per second of the steady load', 1_000),
    'steady-seconds': number('duration of the steady load', 60, 3),
    only: word('visits, map or viewers', ['visits', 'map', 'viewers']),
  },
  refuse: () => (hasChromium ? null : 'Chromium is not installed. Install the package chromium.'),
  async measure(chosen, context) {
    const { rounds, rate, products, only, quick } = chosen;
    const { cleanup, folder, progress } = context;
    const measured: PagePart[] = [];
    const setting = await createSetting(chosen, context);
    if (only !== 'viewers') {
      const temporary = cleanup.temporaryFolder(folder);
      const endpoint = await createEndpoint(temporary);
      const large = { folder: join(temporary, 'page'), products, endpoint };
      const receiver = await openLarge(context, large);
      const browser = await openBrowser();
      try {
        const visit = { browser, receiver, rounds, show: progress.show };
        if (only !== 'map')
          measured.push(await measureVisits({ ...visit, values: quick ? 5 : 25 }));
        if (only !== 'visits') {
          measured.push(await measureMap({ ...visit, motionMs: quick ? 1_000 : 4_000 }));
        }
      } finally {
        await browser.close();
      }
      await receiver.stop();
      cleanup.removeFolder(temporary);
    }
    if (only === undefined || only === 'viewers') {
      const measureMs = chosen['steady-seconds'] * 1_000;
      measured.push(await measureViewers(setting, { ...setting, ratePerSecond: rate, measureMs }));
    }
    return {
      setting: setting.text,
      figures: { parts: measured.map(({ figures }) => figures) },
      text: measured.flatMap(({ text }) => text),
      targets: measured.flatMap(({ targets }) => targets),
      faults: measured.flatMap(({ faults }) => faults),
    };
  },
});
