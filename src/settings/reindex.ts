/** The settings of re-index. */
import { integer } from './fields.ts';

export const reindexSettings = {
  TALLY_GAPS_LIST_REQUESTS_PER_DAY: integer(0, 1_000_000_000, 200_000).describe(
    'LIST requests that closing the gaps of one bucket may cost within 24 hours. 200,000: 200 million objects, one US dollar. 0: gaps stay open until somebody re-indexes.',
  ),
  TALLY_REINDEX_LISTINGS: integer(1, 64, 8).describe(
    'Ranges of keys that this process compares at once. 8: a listing is serial, 1,000 keys per 60 to 150 ms, so one alone leaves the index idle.',
  ),
  TALLY_REINDEX_BULK_CONCURRENCY: integer(1, 32, 4).describe(
    'Bulk requests of re-index at once. 4: as many as of live events, before which it gives way: one at a time while these have work, half as many after each 429.',
  ),
  TALLY_REINDEX_HEAD_CONCURRENCY: integer(1, 256, 16).describe(
    'HEADs of re-index at once. 16: half of what live events have; only what the listing lacks, or the index has newer, is looked at.',
  ),
};
