/** The limits of a process. They are no settings: each was measured or follows from a service's own limit, and what is slower than they allow needs more workers. */

/** Bulk requests of live events. Of 200 actions each event took less CPU of Tally than of 1,000, and no more of OpenSearch. */
export const BULK_ACTIONS = 200;
/** 5 MiB is far below OpenSearch's limit of 100 MB. */
export const BULK_BYTES = 5_242_880;
/** A delay of 20 ms is not noticeable, yet fills the requests under load. */
export const BULK_LINGER_MS = 20;
/** On two cores 4 requests at the same time performed best. */
export const BULK_CONCURRENCY = 4;

/** 64 HEAD and tagging requests allow 3,200 a second at 20 ms each: more than one worker has CPU for, and less than the 5,500 that one S3 prefix accepts. */
export const HEADS = 64;
/** Job parts that a process compares at the same time. A listing is serial and takes 60 to 150 ms per 1,000 keys, so a single one would leave the index idle. */
export const REINDEX_LISTINGS = 8;
/** For re-index 48 allow 2,400 a second, below those for live events, which have priority. */
export const REINDEX_HEADS = 48;
/** For sweeps an eighth of those for live events. */
export const SWEEP_HEADS = 8;
/** As many as live events have: re-index sends one at a time while live events have work waiting, and half as many after each 429. */
export const REINDEX_BULK_CONCURRENCY = 4;
/** Far longer than S3 usually takes, so that only requests that hang are given up. */
export const S3_TIMEOUT_MS = 10_000;

/** Messages held for slow work (HEADs, settling, outages) at which receiving pauses, and half as many that are being written. They usually take some 20 MiB of memory. */
export const HELD_MAX = 1_000;
/** The share of the heap limit for held messages. V8 derives that limit from the memory of the container; the other three quarters are for one large message, for re-index and for garbage. */
export const HELD_HEAP_SHARE = 0.25;
/** Receiving pauses while more messages are in flight: a margin to 120,000, where SQS stops delivering without an error. */
export const IN_FLIGHT_MAX = 80_000;
