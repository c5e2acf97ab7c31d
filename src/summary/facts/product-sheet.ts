/** Fact sheet of a product: labelled short texts, for a model. */

import {
  areaPhrase,
  datePhrase,
  delayPhrase,
  durationPhrase,
  type FactSheet,
  factSheet,
  percentPhrase,
  sizePhrase,
} from './phrases.ts';
import { nearPhrase, regionPhrase } from './place-phrases.ts';
import { coversPeriod, type ProductFacts, receiptDelay } from './product-facts.ts';
import { baselineLabel, versionNoun, versionPhrase } from './versions.ts';

/** Returns the known facts of a product, the most important first. */
export function productSheet(facts: ProductFacts): FactSheet {
  return factSheet('product', [
    ...identityRows(facts),
    ...acquisitionRows(facts),
    ...placeRows(facts),
    ...catalogueRows(facts),
  ]);
}

type Rows = readonly (readonly [label: string, text: string | null])[];

function identityRows(facts: ProductFacts): Rows {
  const { instrument } = facts;
  return [
    ['subject', facts.auxiliary ? 'auxiliary file' : 'product'],
    ['satellite', facts.satellite],
    [
      'state in the catalogue',
      facts.deleted ? `deleted ${facts.deletionCause ?? ''}`.trimEnd() : null,
    ],
    ['deletion date', datePhrase(facts.deletionUs)],
    ['content', facts.content],
    ['processing level', facts.level],
    ['instrument', instrument === null ? null : `${instrument.name} (${instrument.code})`],
    ['acquisition mode', facts.mode],
    ['polarisation', facts.polarisation],
    ['name', facts.name ?? (facts.foreignName === null ? null : 'in no known form')],
    ['record', facts.hasRecord ? null : 'has not arrived'],
  ];
}

function acquisitionRows(facts: ProductFacts): Rows {
  const { startUs, endUs, auxiliary } = facts;
  const openEnded = endUs === null || endUs === startUs;
  if (auxiliary) {
    const verb = coversPeriod(facts) ? 'covers' : 'valid';
    return [
      [`${verb} from`, datePhrase(startUs)],
      [`${verb} until`, openEnded ? null : datePhrase(endUs)],
    ];
  }
  return [
    ['sensing start', datePhrase(startUs)],
    ['sensing start of the earlier scene', datePhrase(facts.earlierUs)],
    [
      'sensing duration',
      startUs === null || endUs === null ? null : durationPhrase(endUs - startUs),
    ],
    ['cloud cover', percentPhrase(facts.cloudCoverPercent)],
    [facts.tile?.startsWith('path') ? 'path and row' : 'tile', facts.tile],
    ['absolute orbit number', numberText(facts.orbitNumber)],
    ['relative orbit number', numberText(facts.relativeOrbitNumber)],
    ['orbit direction', facts.orbitDirection],
  ];
}

function placeRows({ place, footprint, auxiliary, hasRecord }: ProductFacts): Rows {
  if (place === null) {
    if (auxiliary || !hasRecord) return [];
    return [['footprint', footprint ? 'could not be placed on the map' : 'none in the record']];
  }
  const near = nearPhrase(place);
  return [
    ['place', regionPhrase(place)],
    ['large places within', near?.within ?? null],
    ['nearest large place', near?.nearest ?? null],
    ['area', areaPhrase(place.areaSquareKm)],
  ];
}

function catalogueRows(facts: ProductFacts): Rows {
  const { publicationUs, receivedUs, processingBaseline: baseline } = facts;
  const version = versionNoun(facts);
  return [
    ['timeliness', facts.timeliness],
    ['publication', datePhrase(publicationUs)],
    [
      'delay from sensing to publication',
      facts.auxiliary ? null : delayPhrase(facts.startUs, publicationUs),
    ],
    ['receipt', datePhrase(receivedUs)],
    ['delay from publication to receipt', receiptDelay(facts)],
    ['size', sizePhrase(facts.sizeBytes)],
    [baselineLabel(baseline), baseline],
    ['processor version', baseline === facts.processorVersion ? null : facts.processorVersion],
    ['availability', facts.online === null || facts.deleted ? null : onlineText(facts.online)],
    [`replaced by a newer ${version}`, versionPhrase(facts.replacedBy)],
    ['name of the newer product', facts.replacedBy?.name ?? null],
    [`replaces an older ${version}`, versionPhrase(facts.replaces)],
    ['name of the older product', facts.replaces?.name ?? null],
    ['product id', facts.id],
  ];
}

function onlineText(online: boolean): string {
  return online ? 'online' : 'offline: it must be ordered before it can be downloaded';
}

/** Orbit numbers are identifiers: no thousands separators. */
function numberText(value: number | null): string | null {
  return value === null ? null : String(value);
}
