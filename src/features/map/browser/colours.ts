/** Data of the map, and colours of footprints: classes of collection, age, cloud cover or delay. */
import { spanText } from '../../../core/page/browser/texts.ts';

/** Data of the script. */
export interface MapData {
  /** Address of the footprints, newest first. */
  footprints: string;
  footprintsMax: number;
  /** Start of the period; `sinceMs` before now unless that is null. */
  since: string;
  sinceMs: number | null;
  /** Null for a period that has not ended: products can arrive. */
  until: string | null;
  projection: string;
  colour: string;
  /** Classes of the legend that are off, with commas between them. */
  hidden: string;
  /** Centre and zoom of the URL, `longitude,latitude,zoom`; '' for the whole map. */
  view: string;
  /** Product to select; '' for none. */
  selected: string;
  /** Groups of collections with a colour of their own. */
  collectionGroups: readonly string[];
  /** Addresses of the land outlines. */
  land: { coarse: string; fine: string };
}

/** A product of `/api/footprints`, without its geometry. */
export interface Footprint {
  position: number;
  productId: string;
  productName: string | null;
  collection: string | null;
  sensingStart: string | null;
  publicationDate: string | null;
  receivedAt: string;
  cloudCoverPercent: number | null;
}

export interface Colouring {
  title: string;
  /** Each with its class in the style sheet, in the order of the legend. */
  classes: readonly { style: string; label: string }[];
  classOf(footprint: Footprint, nowMs: number): number;
}

/** Classes of a value between bounds; the last class is for unknown values. */
function steps(
  title: string,
  bounds: readonly number[],
  textOf: (bound: number) => string,
  read: (footprint: Footprint, nowMs: number) => number | null,
): Colouring {
  const texts = bounds.map(textOf);
  const labels = [
    `less than ${texts[0]}`,
    ...texts.slice(1).map((text, i) => `${texts[i]} to ${text}`),
    `${texts.at(-1)} and more`,
  ];
  const ramp = labels.map((label, i) => ({ style: `step-${i}`, label }));
  return {
    title,
    classes: [...ramp, { style: 'unknown', label: 'not known' }],
    classOf: (footprint, nowMs) => {
      const value = read(footprint, nowMs);
      if (value === null || Number.isNaN(value)) return labels.length;
      return bounds.filter((bound) => value >= bound).length;
    },
  };
}

const hour = 3_600;
const secondsOf = (text: string | null) => (text === null ? Number.NaN : Date.parse(text) / 1_000);

const byValue: Readonly<Record<string, Colouring>> = {
  age: steps(
    'Time since sensing',
    [3, 6, 12, 24, 72].map((hours) => hours * hour),
    spanText,
    ({ sensingStart }, nowMs) => nowMs / 1_000 - secondsOf(sensingStart),
  ),
  cloud: steps(
    'Cloud cover',
    [10, 20, 40, 60, 80],
    (percent) => `${percent} %`,
    ({ cloudCoverPercent }) => cloudCoverPercent,
  ),
  delay: steps(
    'Publication to receipt',
    [60, 120, 300, 900, hour],
    spanText,
    ({ publicationDate, receivedAt }) => secondsOf(receivedAt) - secondsOf(publicationDate),
  ),
};

/** Returns the colours of a map. Groups of collections have a colour of their own; all others share the last one. */
export function colouringOf(name: string, groups: readonly string[]): Colouring {
  return (
    byValue[name] ?? {
      title: 'Collection',
      classes: [...groups, 'other'].map((label, i) => ({ style: `kind-${i}`, label })),
      classOf: ({ collection }) => {
        const found = groups.findIndex((group) => collection?.startsWith(group));
        return found < 0 ? groups.length : found;
      },
    }
  );
}
