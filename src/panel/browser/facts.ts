/** What the build writes into the script. */
import type { Facts } from '../facts.ts';

declare const TALLY_FACTS: Facts;

export const facts: Facts = TALLY_FACTS;
