/** The stored record of a connection, beside the records that several subjects share. */
import { connectionSchema } from './connection.rules.ts';
import { refs as shared } from '../store/stored.ts';

/** The reference to a record of each kind. */
export const refs = {
  ...shared,
  /** What Tally made in AWS for a bucket. */
  connection: (bucket: string) => ({ id: `connection:${bucket}`, kind: 'connection', schema: connectionSchema }) as const,
};
