/** `/api/alerts` and `/api/quarantine`, as a program uses them. */
import { expect, it } from 'vitest';
import { follow, openConsole } from '../../core/api/console-context.ts';
import { filledOperations } from '../../core/api/operation-sample.ts';

it('/api/alerts queries active alerts, or all of a period', async () => {
  const operations = filledOperations();
  const { get } = await openConsole(operations);
  await get('/api/alerts');
  await get('/api/alerts?all=true&since=2026-05-01&until=2026-05-02&before=9&limit=5');
  const [sinceUs, untilUs] = [Date.UTC(2026, 4, 1) * 1000, Date.UTC(2026, 4, 2) * 1000];
  expect(operations.asked).toEqual([
    { all: false, limit: 101 },
    { all: true, sinceUs, untilUs, beforeId: 9, limit: 6 },
  ]);
});

it.each([
  ['alerts', { alerts: [1, 2, 3, 4, 5] }],
  ['quarantine', { bodies: [1, 2, 3, 4, 5] }],
])('/api/%s gives each row once through its links', async (name, rows) => {
  const context = await openConsole(filledOperations(rows));
  const answers = await follow(context, `/api/${name}?limit=2`, ({ next }) => next);
  const ids = answers.flatMap(({ json }) => json[name].map(({ id }: { id: number }) => id));
  expect([answers.length, ids]).toEqual([3, [5, 4, 3, 2, 1]]);
});

it('/api/quarantine returns the fields of the command line, and headers and content of one body', async () => {
  const { get } = await openConsole(filledOperations({ bodies: [1] }));
  const listed = {
    ...{ id: 1, receivedAt: '2026-05-01T00:00:00.000000Z', subscription: 'alps' },
    ...{ source: 'push', reason: 'not-json', bodyBytes: 6 },
    faults: [{ code: 'not-json', index: null, message: 'The body is not JSON.' }],
  };
  expect((await get('/api/quarantine')).json).toEqual({ quarantine: [listed], next: null });
  const content = { headers: ['Content-Type', 'text/plain'], bodyBase64: btoa('body 1') };
  expect((await get('/api/quarantine?id=1')).json.quarantine).toEqual([{ ...listed, ...content }]);
  expect((await get('/api/quarantine?id=9')).json).toEqual({ quarantine: [], next: null });
});
