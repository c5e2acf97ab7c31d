/**
 * Points known to lie in a sea: in its middle, and near its usual limits. Longitude and latitude of
 * each.
 */
import type { Position } from '../../../../src/filter/filter-tree.ts';

const text = `
North Atlantic Ocean: -30 40, -45 20, -60 35, -25 5, -15 50, -70 33, -18 28, -50 45
South Atlantic Ocean: -15 -20, 5 -35, -40 -40, 10 -10, -30 -5, -62 -45, 17 -34, -55 -50
North Pacific Ocean: -150 30, 170 35, -120 20, 180 10, -95 5, 150 30, -126 42, -160 45
South Pacific Ocean: -120 -20, -80 -30, 180 -40, -150 -50, -178 -22, -90 -10, -76 -45
Indian Ocean: 80 -20, 60 -30, 100 -35, 45 -5, 110 -15, 90 -5, 35 -38, 112 -30
Southern Ocean: 60 -63, -140 -65, 110 -62, 20 -66, 0 -62
Arctic Ocean: 0 88, 180 85, -140 80, 90 84, -100 85
Mediterranean Sea: 18 34.5, 6 39, 20 33.5, 5 37.5
Alboran Sea: -4 36, -3 35.7, -2.6 36.2
Strait of Gibraltar: -5.6 35.95
Balearic Sea: 2 40.5, 1 40, 2.5 39.9
Gulf of Lion: 4.2 42.8, 3.6 42.9
Ligurian Sea: 9 43.6, 8.5 43.8, 9.8 43.3
Tyrrhenian Sea: 12 40, 11 41.5, 14 39, 15.3 39, 10.2 42.2
Adriatic Sea: 15 43, 13 44.8, 18 42, 18.8 41, 12.6 45.2
Ionian Sea: 18 38, 17 39.5, 20 38.3, 16.3 37.5
Aegean Sea: 25 38.5, 24.5 36.5, 25 40, 26.5 36.5, 23.6 37.6
Levantine Sea: 32 34, 29 33, 34.5 32.5, 30 35.5, 35.3 36
Gulf of Sidra: 18.5 31, 17.5 31.5
Sea of Marmara: 28 40.7, 28.8 40.7
Black Sea: 34 43, 30 44, 39.5 42.5, 29.5 41.8, 32 45.3
Sea of Azov: 36.5 46, 37.5 46.3
Caspian Sea: 51 41, 50 44, 52 38, 50.5 39.5
North Sea: 3 56, 1 54, 6 54.5, 2 60, 0 58, 3 52.5, 4.5 58.8
Skagerrak: 9 58, 10 58.3
Kattegat: 11.5 57, 11.7 56.6, 11.8 57.3
Baltic Sea: 19 56, 16 55.2, 20 58.5, 18.8 54.8, 11 54.4, 19.5 59.2
Gulf of Bothnia: 20 62, 22 64.5, 18.5 61, 24 65.3
Gulf of Finland: 26 60, 24 59.7, 28.5 60.1
Gulf of Riga: 23.6 57.6, 23.8 57.2
English Channel: -2 50, 0.5 50.4, -4 49.5, 1 50.7
Irish Sea: -5 53.7, -4 54, -5.8 52.4
Celtic Sea: -7 50.5, -8 51, -6.5 49.5
Bristol Channel: -4 51.35
Bay of Biscay: -4 45, -2 44, -5 46.5, -3 43.8
Norwegian Sea: 3 67, 8 65, 0 64, 10 72, -5 66
Greenland Sea: -5 76, -12 72, 0 79, -16 68.5
Denmark Strait: -27 66.8, -29 67
Irminger Sea: -35 62, -30 63.5
Barents Sea: 38 74, 45 72, 30 71.5, 50 77, 52 70
White Sea: 38 65.5, 35 66, 41.5 67
Kara Sea: 75 76, 65 72, 90 77, 73 73.5
Laptev Sea: 125 75, 115 76, 135 73
East Siberian Sea: 160 72, 150 73, 170 71
Chukchi Sea: -172 69, -165 70, -169 67
Beaufort Sea: -140 72, -148 71.5, -132 71
Baffin Bay: -65 74, -70 75.5, -60 71.5
Davis Strait: -57 65, -60 63, -58 68.5
Labrador Sea: -53 57, -50 54, -58 59, -55 53
Hudson Strait: -70 61.5, -74 62.8
Hudson Bay: -86 60, -92 59, -80 58, -83 56.5
James Bay: -80.5 53, -80 52
Foxe Basin: -78 67, -79 68.5
Gulf of Saint Lawrence: -62 48.5, -60 49, -63.5 47.5
Bay of Fundy: -65.7 45
Gulf of Maine: -69 43, -68 43.5
Gulf of Mexico: -90 25, -85 27, -96 26, -94 20, -84 24
Caribbean Sea: -75 15, -65 15, -82 18, -80 11, -86 19, -70 17, -62.5 14
Gulf of California: -111 27, -113.5 30.3, -109 24.5
Gulf of Alaska: -145 57, -150 58.5, -140 58, -153 56
Gulf of Panama: -79.3 8.2
Río de la Plata: -57 -35.2
Drake Passage: -65 -58.5, -62 -60.5
Scotia Sea: -45 -57, -38 -58
Bering Sea: 180 58, -170 60, 170 57, -165 58, -178 54, -175 63
Sea of Okhotsk: 150 55, 145 48, 147 58, 153 53
Sea of Japan: 135 40, 132 37, 138 43, 130.5 39, 137 38, 140.5 48
Yellow Sea: 123 36, 124 34.5, 122.5 38.5
Bohai Sea: 119.5 38.5, 120.5 39.5
East China Sea: 125 29, 123 27, 127 31, 123.5 31
Taiwan Strait: 119.3 24.2
South China Sea: 114 15, 111 8, 117 19, 112 5, 118.5 14, 108 3, 113 20.5
Gulf of Thailand: 101 10, 101 12, 102 8
Gulf of Tonkin: 107.5 20, 107 18.5
Philippine Sea: 133 20, 128 12, 125 22, 138 28, 130 6, 124 18
Sulu Sea: 120 8.5, 119 7.5, 121 10
Celebes Sea: 122 4, 119.5 3, 124 3
Molucca Sea: 126 0.5, 125.2 -0.5
Banda Sea: 127 -5.5, 125 -6, 129.5 -6.5, 124.5 -4
Makassar Strait: 118 -2, 118 -4
Java Sea: 111 -5, 108 -5, 114 -5.5, 117 -5.3
Flores Sea: 120.5 -7.5, 119 -7.3
Savu Sea: 122 -9.5
Timor Sea: 127 -11, 129 -12.5, 126 -10.8
Arafura Sea: 136 -9.5, 134 -8, 138 -10
Gulf of Carpentaria: 139 -14, 138 -15.5, 140.5 -16.5
Torres Strait: 142.2 -9.9
Coral Sea: 155 -18, 150 -15, 158 -25, 165 -17, 147 -12
Solomon Sea: 153 -8, 150 -8
Bismarck Sea: 148 -4, 150 -4
Tasman Sea: 160 -40, 155 -35, 165 -45, 170 -38
Bass Strait: 146 -39.8, 145 -39.3
Great Australian Bight: 130 -35, 125 -34, 136 -37
Bay of Bengal: 88 15, 85 10, 90 20, 82 12
Andaman Sea: 96 10, 95.5 13, 97 8
Strait of Malacca: 100 4, 102 2
Arabian Sea: 65 15, 60 20, 70 18, 55 13, 68 22.5, 63 8
Laccadive Sea: 75 8, 76 6
Red Sea: 38 20, 35.5 25, 41 16, 34.5 27
Gulf of Aden: 48 12.5, 45 12
Persian Gulf: 52 26.5, 50 28.5, 54 25.3
Gulf of Oman: 58.5 24.8, 60 24.5
Mozambique Channel: 41 -18, 38 -22, 43 -13
Gulf of Guinea: 3 3, 0 4, 7 2
Weddell Sea: -40 -72, -45 -68, -30 -75
Ross Sea: 180 -76, 172 -75, -170 -77
Amundsen Sea: -112 -73, -107 -72
Bellingshausen Sea: -85 -71, -80 -69
`;

/** The sea's name, and a point in it. */
export const seaPoints: readonly { name: string; place: Position }[] = text
  .trim()
  .split('\n')
  .flatMap((line) => {
    const [name = '', places = ''] = line.split(': ');
    return places.split(', ').map((place) => {
      const [longitude, latitude] = place.split(' ').map(Number);
      return { name, place: [longitude ?? Number.NaN, latitude ?? Number.NaN] as const };
    });
  });
