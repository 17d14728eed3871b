/** The settings of ingest: receiving and holding messages, bulk requests, and connecting buckets automatically. */
import { integer, optionalFlag } from './fields.ts';

export const ingestSettings = {
  TALLY_INGEST_POLLERS: integer(1, 64, 8).describe(
    'The number of receive requests that run at the same time for each bucket queue. Eight receive up to 80 messages per round trip, which one worker can process.',
  ),
  TALLY_INGEST_WAIT_S: integer(0, 20, 20).describe(
    'How long a receive request waits for messages, in seconds. The default of 20 s is the maximum of SQS and causes the fewest empty receives.',
  ),
  TALLY_INGEST_VISIBILITY_S: integer(10, 43_200, 60).describe(
    'How long a received message stays hidden from other workers, in seconds; Tally extends the time for messages that it holds. With 60 s the messages of a killed worker are received again after at most one minute.',
  ),
  TALLY_INGEST_HELD_MAX: integer(10, 20_000, 1_000).describe(
    'The number of messages held for slow work (HEADs, settling, outages) at which receiving pauses. 1,000 messages usually take some 20 MiB of memory. Receiving also pauses when the held messages weigh a quarter of the heap limit of Node, because a message has up to 1 MiB.',
  ),
  TALLY_INGEST_HOLD_MAX_MS: integer(1_000, 3_600_000, 60_000).describe(
    'How long a message is held while its bucket, its index or S3 does not answer, in milliseconds. After that it is hidden in its queue for 30 s to 5 min, so that another worker may be able to handle it. While the index store as a whole does not answer, messages are held for up to 11 hours.',
  ),
  TALLY_INGEST_IN_FLIGHT_MAX: integer(100, 120_000, 80_000).describe(
    'Receiving pauses while SQS reports more messages in flight than this. The default of 80,000 keeps a margin to 120,000, where SQS stops delivering without an error.',
  ),
  TALLY_BULK_ACTIONS: integer(1, 10_000, 1_000).describe(
    'The largest number of actions in one bulk request. In measurements 1,000 had the lowest latency at full throughput.',
  ),
  TALLY_BULK_BYTES: integer(10_000, 50_000_000, 5_242_880).describe(
    'The largest size of one bulk request, in bytes. The default of 5 MiB is far below OpenSearch’s limit of 100 MB.',
  ),
  TALLY_BULK_LINGER_MS: integer(0, 1_000, 20).describe(
    'How long a bulk request waits for more actions, in milliseconds. A delay of 20 ms is not noticeable, yet fills the requests under load.',
  ),
  TALLY_BULK_CONCURRENCY: integer(1, 32, 4).describe(
    'The number of bulk requests for live events that run at the same time. In measurements on two cores 4 performed best.',
  ),
  TALLY_AUTO_CONNECT: optionalFlag.describe(
    'Whether a bucket is connected at its first event. The default is false, so that only buckets that you add are indexed; in the embedded mode it is true.',
  ),
  TALLY_AUTO_CONNECT_MAX: integer(1, 10_000, 100).describe(
    'TALLY_AUTO_CONNECT connects no further bucket once this many buckets are connected. The default of 100 bounds what events of unexpected buckets can create.',
  ),
  TALLY_TARGET_LAG_S: integer(1, 86_400, 60).describe(
    'How long draining the backlog may take, in seconds; the metric tally_workers_wanted is computed from it. With 60 s a scaled installation catches up within about a minute.',
  ),
};
