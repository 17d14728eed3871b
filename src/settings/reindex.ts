/** The settings of re-index and of closing gaps. */
import { integer } from './fields.ts';

export const reindexSettings = {
  TALLY_GAPS_LIST_REQUESTS_PER_DAY: integer(0, 1_000_000_000, 200_000).describe(
    'The number of LIST requests that closing the gaps of one bucket and its scheduled compare may use in a day on average; those of one day may come at once. 200,000 requests list 200 million objects and cost one US dollar. With 0, gaps stay open until a re-index is started by hand.',
  ),
  TALLY_COMPARE_INTERVAL_DAYS: integer(0, 365, 7).describe(
    'How often each bucket is compared whole with its index, in days, whatever its source: events may be lost where nothing sees it. A million objects take a thousand LIST requests, which cost half a cent, within the requests of TALLY_GAPS_LIST_REQUESTS_PER_DAY. With 0, no compare is scheduled.',
  ),
  TALLY_REINDEX_LISTINGS: integer(1, 64, 8).describe(
    'The number of key ranges that this process compares at the same time. A listing is serial and takes 60 to 150 ms per 1,000 keys, so a single one would leave the index idle; the default is 8.',
  ),
  TALLY_REINDEX_BULK_CONCURRENCY: integer(1, 32, 4).describe(
    'The number of bulk requests of re-index that run at the same time. The default of 4 is that of live events, which have priority: re-index sends one at a time while live events have work waiting, and half as many after each 429.',
  ),
  TALLY_REINDEX_HEAD_CONCURRENCY: integer(1, 256, 48).describe(
    'The number of HEAD requests of re-index that run at the same time. The default of 48 allows 2,400 requests per second at 20 ms each, and is below that for live events, which have priority.',
  ),
};
