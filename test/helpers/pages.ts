/** The pages of the program. */
import { app } from '../../src/app.ts';
import { loadListenerSlots } from '../../src/core/api/listener-slot.ts';
import { createIsPagePath } from '../../src/core/page/pages.ts';

/** Contributions of all features to the private listener. */
export const listenerSlots = await loadListenerSlots(app);

/** In the order of the navigation. */
export const navigation = listenerSlots.flatMap(({ pages = [] }) => pages);

export const isPagePath = createIsPagePath(navigation);
