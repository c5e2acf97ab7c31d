/** The instruments of the missions, in plain words. */

export interface Instrument {
  /** `MSI`. */
  code: string;
  /** `multispectral imager`. */
  words: string;
}

const words: Readonly<Record<string, string>> = {
  SAR: 'C-band synthetic-aperture radar',
  MSI: 'multispectral imager',
  OLCI: 'ocean and land colour instrument',
  SLSTR: 'sea and land surface temperature radiometer',
  SRAL: 'synthetic-aperture radar altimeter',
  MWR: 'microwave radiometer',
  TROPOMI: 'ultraviolet to shortwave-infrared spectrometer',
  'POSEIDON-4': 'radar altimeter',
  TM: 'thematic mapper',
  'ETM+': 'enhanced thematic mapper',
  OLI: 'operational land imager',
  TIRS: 'thermal infrared sensor',
  'OLI and TIRS': 'operational land imager and thermal infrared sensor',
  'OLCI and SLSTR': 'imagers of colour and temperature',
};

/** What records call by more than one name. */
const otherCodes: Readonly<Record<string, string>> = {
  'SAR-C SAR': 'SAR',
  'SAR-C': 'SAR',
  SYNERGY: 'OLCI and SLSTR',
  P4: 'POSEIDON-4',
  OLI_TIRS: 'OLI and TIRS',
  'OLI/TIRS': 'OLI and TIRS',
};

/** The instrument that a code stands for; null for an unknown one. */
export function instrumentOf(code: string): Instrument | null {
  const known = Object.hasOwn(otherCodes, code) ? (otherCodes[code] ?? code) : code;
  const found = Object.hasOwn(words, known) ? words[known] : undefined;
  return found === undefined ? null : { code: known, words: found };
}
