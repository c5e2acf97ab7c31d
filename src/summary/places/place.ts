/** Where a product lies, in words of the map. */

export interface PlaceShare {
  /** The English name. */
  name: string;
  /** The part of the footprint that lies in it, 0 to 1; roughly, and never 0. */
  share: number;
}

export interface NearPlace {
  name: string;
  /** The English name of its country. */
  country: string;
  population: number;
  /** From the edge of the footprint, roughly; 0 for a place within it. */
  distanceKm: number;
  /** From the place to the footprint's nearest edge, such as `north-east`; null for a place within it. */
  direction: string | null;
}

export interface Place {
  /** Countries and territories, and seas and oceans, each with the largest share first. */
  countries: readonly PlaceShare[];
  seas: readonly PlaceShare[];
  /** The largest places within the footprint, at most three; where there is none, the nearest one. */
  near: readonly NearPlace[];
  /** Of the footprint on the globe. */
  areaSquareKm: number;
  centre: { longitude: number; latitude: number };
}
