/** A program to be killed: raises an alert and sends it. */

import { createUrlSender, deliverDue } from '../../../src/features/alerts/notify.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { openStore } from '../../helpers/store.ts';

const [dataDir = '', url = ''] = process.argv.slice(2);
const nowUs = () => Date.now() * 1000;
const random = Math.random;
const { alerts } = await openStore({ dataDir });
const text = { text: 'The disk is full.', evidence: [], nextStep: 'Free some space.' };
const finding = { kind: 'disk', subject: '', level: 'critical', ...text } as const;
// It must not outlive the test.
process.once('disconnect', () => process.exit());
const about = { checked: [], findings: [finding], channels: ['url'], atUs: nowUs() } as const;
await alerts.settleFindings(about);
const senders = { url: createUrlSender(url, { fetch, random }) };
const state = { channel: 'url', failed: new Map() } as const;
const deps = { alerts, senders, nowUs, random, log: silentLog };
await deliverDue(deps, state, new AbortController().signal);
