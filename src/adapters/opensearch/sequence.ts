import { z } from 'zod';

/** What identifies one version of a document: OpenSearch's sequence number and primary term. */
export const sequenceSchema = z.object({ _seq_no: z.number(), _primary_term: z.number() });
export type Sequence = z.infer<typeof sequenceSchema>;
