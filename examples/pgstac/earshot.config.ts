import { collection, defineConfig } from 'earshot';

export default defineConfig({
  sinks: {
    pgstac: {
      stac: 'https://eoapi.example.org/stac',
      bearerFile: 'stac-token',
      filter: collection('SENTINEL-2'),
      stacIds: 'catalogue',
      maxAge: '30d',
    },
  },
});
