/**
 * Charts as SVG, drawn by the server: they work without JavaScript, and their colours follow the theme. A chart with
 * links is a group for screen readers: an image has no content.
 */

import { dayUs, hourUs, shortDateUs } from '../terms/dates.ts';
import { countText } from '../terms/text.ts';
import { type Html, html } from './markup.ts';

export interface Bar {
  /** Start and end of the time span. */
  fromUs: number;
  toUs: number;
  value: number;
  /** Page with the content of the bar. */
  href: string;
}

/** Period and name of a chart. */
interface Axes {
  fromUs: number;
  toUs: number;
  label: string;
}

type Scale = (value: number) => number;

/** Width of a chart; a narrow window scrolls it. */
const width = 900;

/** Height of the labels of the time axis. */
const bottom = 22;

/** Draws axes with their labels, and the content between them. */
function drawChart(
  { fromUs, toUs, label }: Axes,
  plot: { left: number; right: number; height: number },
  grid: readonly (readonly [y: number, text: string])[],
  content: (xOf: Scale) => unknown,
): Html {
  const { left, right, height } = plot;
  const plotWidth = width - left - right;
  const xOf = (us: number) => round(left + ((us - fromUs) / (toUs - fromUs)) * plotWidth);
  const lines = grid.map(
    ([y, text]) => html`<line class="axis" x1="${left}" x2="${width - right}" y1="${y}" y2="${y}"/>
<text x="${left - 6}" y="${y + 4}" text-anchor="end">${text}</text>`,
  );
  const times = timeTicks(fromUs, toUs).map(
    ({ us, text }) =>
      html`<text x="${xOf(us)}" y="${height - 5}" text-anchor="middle">${text}</text>`,
  );
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}"><svg class="chart" viewBox="0 0 ${width} ${height}" role="group">
${lines}
${times}
${content(xOf)}
</svg></div>`;
}

/** Minimum width of the bar of the current hour. */
const openBarWidth = 6;

/** Draws counts over time. Spans without a bar have the count 0. */
export function barChart(bars: readonly Bar[], axes: Axes): Html {
  const plot = { left: 44, right: 0, height: 180 };
  // Half of it is a label, too.
  const top = niceTop(Math.max(2, ...bars.map(({ value }) => value)));
  const base = plot.height - bottom;
  const yOf = (value: number) => round(base - (value / top) * (base - 8));
  const grid = [0, top / 2, top].map((value) => [yOf(value), shortCount(value)] as const);
  return drawChart(axes, plot, grid, (xOf) =>
    bars.map(({ fromUs, toUs, value, href }) => {
      const isOpen = toUs > axes.toUs;
      const end = Math.min(width, xOf(toUs));
      // The current hour has just begun.
      const x = Math.max(plot.left, Math.min(xOf(fromUs), end - (isOpen ? openBarWidth : 0)));
      const y = yOf(value);
      const title = `${shortDateUs(fromUs)} UTC${isOpen ? ' so far' : ''}: ${countText(value)}`;
      return html`<a href="${href}" tabindex="-1"><title>${title}</title><rect class="bar ${isOpen ? 'current' : ''}" rx="1.5" x="${x}" y="${y}" width="${round(Math.max(1, end - x - 1))}" height="${round(base - y)}"/></a>`;
    }),
  );
}

/** Returns the next value of 1, 2, 4, 6, 8 or 10 times a power of ten: halves are round numbers, too. */
function niceTop(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 2)));
  return power * ([1, 2, 4, 6, 8].find((factor) => factor * power >= value) ?? 10);
}

/** `800`, `1.2k`, `3M`. */
function shortCount(value: number): string {
  if (value >= 1_000_000) return `${Number((value / 1_000_000).toFixed(1))}M`;
  return value >= 1_000 ? `${Number((value / 1_000).toFixed(1))}k` : String(value);
}

/** Distances between labels of a time axis. */
const steps = [5 / 60, 0.25, 1, 3, 6, 12, 24, 48, 120, 240].map((hours) => hours * hourUs);

/** Returns the labels of a time axis, at most about ten, in UTC. */
function timeTicks(fromUs: number, toUs: number): { us: number; text: string }[] {
  const step = steps.find((one) => (toUs - fromUs) / one <= 10) ?? 20 * dayUs;
  const ticks: { us: number; text: string }[] = [];
  const margin = (toUs - fromUs) / 40;
  for (let us = Math.ceil((fromUs + margin) / step) * step; us <= toUs - margin; us += step) {
    const text = shortDateUs(us);
    ticks.push({ us, text: us % dayUs === 0 ? text.slice(5, 10) : text.slice(11, 16) });
  }
  return ticks;
}

/** Rounds a coordinate: more digits only make the page larger. */
export function round(value: number): number {
  return Math.round(value * 10) / 10;
}

/** Percentiles of a span of time, in seconds. */
export interface DelayPoint {
  fromUs: number;
  toUs: number;
  p50: number;
  p90: number;
  p99: number;
  /** Page with the content of the span; undefined for a chart without links. */
  href: string | undefined;
  title: string;
}

/** The percentiles of a chart, as their names appear in it. */
export const percentileLines = ['p50', 'p90', 'p99'] as const;

/** Draws percentiles over time, on a logarithmic axis. Spans without a point are gaps. */
export function delayChart(points: readonly DelayPoint[], axes: Axes): Html {
  const plot = { left: 62, right: 6, height: 230 };
  const [top, base] = [10, plot.height - bottom - 6];
  const ticks = delayTicks(points.flatMap((one) => percentileLines.map((name) => one[name])));
  const [lowest = 0.1, highest = 1] = [ticks[0]?.[0], ticks.at(-1)?.[0]];
  // Values outside of the axis are drawn at its ends.
  const yOf = (seconds: number) => {
    const share = Math.log(Math.max(seconds, lowest) / lowest) / Math.log(highest / lowest);
    return round(base - Math.min(1, share) * (base - top));
  };
  const grid = ticks.map(([seconds, text]) => [yOf(seconds), text] as const);
  return drawChart(axes, plot, grid, (xOf) => {
    const lineOf = (run: readonly DelayPoint[], name: (typeof percentileLines)[number]) => {
      // A single point becomes a short line, so that it is visible.
      const at = ({ fromUs, toUs }: DelayPoint) =>
        run.length === 1 ? [fromUs, toUs] : [(fromUs + toUs) / 2];
      const places = run.flatMap((one) => at(one).map((us) => `${xOf(us)},${yOf(one[name])}`));
      return html`<path class="line ${name}" d="M${places.join(' ')}"/>`;
    };
    const lines = percentileLines
      .toReversed()
      .map((name) => runsOf(points).map((run) => lineOf(run, name)));
    const links = points.flatMap(({ href, title, fromUs, toUs }) => {
      if (href === undefined) return [];
      const [x, end] = [xOf(fromUs), xOf(toUs)];
      return html`<a href="${href}" tabindex="-1"><title>${title}</title><rect class="hit" x="${x}" y="${top}" width="${round(end - x)}" height="${base - top}"/></a>`;
    });
    return [lines, links];
  });
}

/** Points without a gap between them. */
function runsOf(points: readonly DelayPoint[]): DelayPoint[][] {
  const runs: DelayPoint[][] = [];
  for (const point of points) {
    const run = runs.at(-1);
    if (run?.at(-1)?.toUs === point.fromUs) run.push(point);
    else runs.push([point]);
  }
  return runs;
}

const inUnit = (seconds: number, unit: string, amounts: readonly number[]) =>
  amounts.map((amount) => [amount * seconds, `${amount} ${unit}`] as const);

/** Durations at which an axis can have a label, in seconds, with their texts. */
const labels = [
  ...inUnit(0.001, 'ms', [1, 10, 50, 100, 200, 500]),
  ...inUnit(1, 's', [1, 2, 5, 10, 30]),
  ...inUnit(60, 'min', [1, 2, 5, 10, 30]),
  ...inUnit(3_600, 'h', [1, 3, 6, 12]),
  ...inUnit(86_400, 'd', [1, 3, 7, 30, 365, 10_000]),
];

/** Returns the labels of an axis that contains all positive values, lowest first: two to about seven. */
function delayTicks(values: readonly number[]): (typeof labels)[number][] {
  const positive = values.filter((value) => value > 0);
  const lowest = positive.length === 0 ? 0.1 : Math.min(...positive);
  const most = Math.max(...positive, lowest);
  const first = Math.max(
    0,
    labels.findLastIndex(([one]) => one <= lowest),
  );
  const end = labels.findIndex(([one]) => one >= most);
  const last = Math.max(first + 1, end === -1 ? labels.length - 1 : end);
  const every = Math.ceil((last - first) / 6);
  return labels
    .slice(first, last + 1)
    .filter((_, i) => (last - first - i) % every === 0 || i === 0);
}
