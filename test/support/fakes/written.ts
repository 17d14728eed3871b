/** The number of each document's write in a memory store, in the feed's order; none: the feed does not have it. */
import type { ObjectDocument } from '../../../src/ordering/document.ts';

export const written = new WeakMap<ObjectDocument, number>();
