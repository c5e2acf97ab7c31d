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

const left = 44;
const bottom = 22;

/** Minimum width of the bar of the current hour. */
const openBarWidth = 6;

/** Draws counts over time. Spans without a bar have the count 0. A narrow chart has fewer labels. */
export function barChart(
  bars: readonly Bar[],
  {
    fromUs,
    toUs,
    height = 180,
    label,
    width,
  }: { fromUs: number; toUs: number; height?: number; label: string; width: number },
): Html {
  // Half of it is a label, too.
  const top = niceTop(Math.max(2, ...bars.map(({ value }) => value)));
  const plotHeight = height - bottom - 8;
  const xOf = (us: number) => round(left + ((us - fromUs) / (toUs - fromUs)) * (width - left));
  const yOf = (value: number) => round(8 + plotHeight - (value / top) * plotHeight);
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${label}">
${[0, top / 2, top].map(
  (
    value,
  ) => html`<line class="axis" x1="${left}" x2="${width}" y1="${yOf(value)}" y2="${yOf(value)}"/>
<text x="${left - 6}" y="${yOf(value) + 4}" text-anchor="end">${shortCount(value)}</text>`,
)}
${timeTicks(fromUs, toUs)
  .filter((_, i) => width > 600 || i % 2 === 0)
  .map(
    ({ us, text }) =>
      html`<text x="${xOf(us)}" y="${height - 5}" text-anchor="middle">${text}</text>`,
  )}
${bars.map((one) => {
  const isOpen = one.toUs > toUs;
  const end = Math.min(width, xOf(one.toUs));
  // The current hour has just begun.
  const x = Math.max(left, Math.min(xOf(one.fromUs), end - (isOpen ? openBarWidth : 0)));
  const y = yOf(one.value);
  const title = `${shortDateUs(one.fromUs)} UTC${isOpen ? ' so far' : ''}: ${countText(one.value)}`;
  return html`<a href="${one.href}" tabindex="-1"><title>${title}</title><rect class="bar ${isOpen ? 'current' : ''}" rx="1.5" x="${x}" y="${y}" width="${round(Math.max(1, end - x - 1))}" height="${round(8 + plotHeight - y)}"/></a>`;
})}
</svg>`;
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

const delayLeft = 62;
const delayRight = 36;
const plotTop = 10;
/** Height of the part below the axis for delays of 0 s or less. */
const belowZero = 22;

/** Draws percentiles over time, on a logarithmic axis. Spans without a point are gaps. A narrow chart has fewer labels. */
export function delayChart(
  points: readonly DelayPoint[],
  { fromUs, toUs, label, width }: { fromUs: number; toUs: number; label: string; width: number },
): Html {
  const height = 230;
  const values = points.flatMap(({ p50, p90, p99 }) => [p50, p90, p99]);
  const ticks = delayTicks(values);
  const plotBottom = height - bottom - 6;
  const hasBelow = values.some((value) => value <= 0);
  const yOf = delayScale(ticks, { top: plotTop, bottom: plotBottom, hasBelow });
  const plotWidth = width - delayLeft - delayRight;
  const xOf = (us: number) => round(delayLeft + ((us - fromUs) / (toUs - fromUs)) * plotWidth);
  const runs = runsOf(points);
  const gridLine = (
    y: number,
    text: string,
  ) => html`<line class="axis" x1="${delayLeft}" x2="${width - delayRight}" y1="${y}" y2="${y}"/>
<text x="${delayLeft - 8}" y="${y + 4}" text-anchor="end">${text}</text>`;
  return html`<svg class="chart" viewBox="0 0 ${width} ${height}" role="group" aria-label="${label}">
${ticks.map((seconds) => gridLine(yOf(seconds), durationText(seconds)))}
${hasBelow ? gridLine(plotBottom, '≤ 0 s') : ''}
${timeTicks(fromUs, toUs)
  .filter((_, i) => width > 600 || i % 3 === 0)
  .map(
    ({ us, text }) =>
      html`<text x="${xOf(us)}" y="${height - 5}" text-anchor="middle">${text}</text>`,
  )}
${runs.map((run) => html`<path class="band" d="${bandPath(run, xOf, yOf)}"/>`)}
${percentileLines
  .toReversed()
  .map((name) =>
    runs.map((run) => html`<path class="line ${name}" d="${linePath(run, name, xOf, yOf)}"/>`),
  )}
${directLabels(points.at(-1), xOf, yOf)}
${points.flatMap(({ href, title, ...one }) => {
  if (href === undefined) return [];
  const [x, end] = [xOf(one.fromUs), xOf(one.toUs)];
  return html`<a href="${href}" tabindex="-1"><title>${title}</title><rect class="hit" x="${x}" y="${plotTop}" width="${round(end - x)}" height="${plotBottom - plotTop}"/></a>`;
})}
</svg>`;
}

type Scale = (value: number) => number;

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

const middleOf = ({ fromUs, toUs }: DelayPoint) => (fromUs + toUs) / 2;

/** A single point becomes a short line, so that it is visible. */
function positionsOf(
  run: readonly DelayPoint[],
  name: (typeof percentileLines)[number],
  xOf: Scale,
  yOf: Scale,
): string[] {
  const [first] = run;
  if (first !== undefined && run.length === 1) {
    const y = yOf(first[name]);
    return [`${xOf(first.fromUs)},${y}`, `${xOf(first.toUs)},${y}`];
  }
  return run.map((one) => `${xOf(middleOf(one))},${yOf(one[name])}`);
}

function linePath(...args: Parameters<typeof positionsOf>): string {
  return `M${positionsOf(...args).join(' ')}`;
}

/** The area between the median and p90. */
function bandPath(run: readonly DelayPoint[], xOf: Scale, yOf: Scale): string {
  const lower = positionsOf(run, 'p50', xOf, yOf);
  const upper = positionsOf(run, 'p90', xOf, yOf);
  return `M${[...lower, ...upper.toReversed()].join(' ')}Z`;
}

/** Names the lines at their last point; names that would overlap move apart. */
function directLabels(last: DelayPoint | undefined, xOf: Scale, yOf: Scale): Html | string {
  if (last === undefined) return '';
  const x = xOf(last.toUs) + 4;
  let lowest = Number.POSITIVE_INFINITY;
  return html`${percentileLines.map((name) => {
    const y = Math.min(yOf(last[name]) + 4, lowest - 12);
    lowest = y;
    return html`<text class="direct ${name}" x="${x}" y="${round(y)}">${name}</text>`;
  })}`;
}

const second = 1;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** Durations at which an axis can have a label, in seconds. */
const labelled = [
  ...[0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30],
  ...[1, 2, 5, 10, 30].map((minutes) => minutes * minute),
  ...[1, 3, 6, 12].map((hours) => hours * hour),
  ...[1, 3, 7, 30, 365, 10_000].map((days) => days * day),
];

/** Returns the labels of an axis that contains all positive values, lowest first: two to about seven. */
function delayTicks(values: readonly number[]): number[] {
  const positive = values.filter((value) => value > 0);
  const [least, most] =
    positive.length === 0 ? [0.1, 1] : [Math.min(...positive), Math.max(...positive)];
  // A date far from the others may exceed all labels.
  const labels = labelled.some((one) => one >= most) ? labelled : [...labelled, most];
  const first = Math.max(
    0,
    labels.findLastIndex((one) => one <= least),
  );
  const last = Math.max(
    first + 1,
    labels.findIndex((one) => one >= most),
  );
  const every = Math.ceil((last - first) / 6);
  return labels
    .slice(first, last + 1)
    .filter((_, i) => (last - first - i) % every === 0 || i === 0);
}

/** Returns the function from seconds to a coordinate. Values outside the axis are drawn at its ends. */
function delayScale(
  ticks: readonly number[],
  { top, bottom, hasBelow }: { top: number; bottom: number; hasBelow: boolean },
): Scale {
  const [lowest = 0.1, highest = 1] = [ticks[0], ticks.at(-1)];
  const zero = hasBelow ? bottom - belowZero : bottom;
  const span = Math.log(highest) - Math.log(lowest);
  return (seconds) => {
    if (seconds <= 0) return bottom;
    const share = (Math.log(seconds) - Math.log(lowest)) / span;
    return round(zero - Math.min(1, Math.max(0, share)) * (zero - top));
  };
}

/** Formats a round duration in its largest unit: `500 ms`, `1 s`, `2 min`, `3 h`, `7 d`. */
function durationText(seconds: number): string {
  if (seconds !== 0 && seconds < 1) return `${Math.round(seconds * 1_000)} ms`;
  if (seconds < minute) return `${Number(seconds.toFixed(1))} s`;
  if (seconds < hour) return `${Number((seconds / minute).toFixed(1))} min`;
  if (seconds < day) return `${Number((seconds / hour).toFixed(1))} h`;
  return `${Number((seconds / day).toFixed(1))} d`;
}
