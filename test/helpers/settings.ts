/** Variables and sections of all features. */
import { app } from '../../src/app.ts';
import { loadSettings } from '../../src/core/config/config.ts';

export const settings = await loadSettings(app);
