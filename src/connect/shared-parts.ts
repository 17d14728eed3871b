/**
 * What `tally setup` reads and makes in AWS. Every function throws `connect.denied` (a RequestError with the missing action) and
 * the faults `connect.unavailable`, `connect.credentials` and `connect.quota`.
 */
import type { Tags } from './names.rules.ts';
import type { FoundPart, SharedPart } from './shared.rules.ts';

export interface SharedParts {
  /** The account of the credentials. */
  account(signal?: AbortSignal): Promise<string>;
  /** The tags of the queue with this URL. */
  queueTags(queueUrl: string, signal?: AbortSignal): Promise<Tags>;
  /** The part with all its attributes. A subscription that is not confirmed is absent. */
  read(part: SharedPart, signal?: AbortSignal): Promise<FoundPart | 'absent'>;
  /** Makes a part with its tags. SQS refuses a queue if one with this name exists and has other attributes. */
  create(part: SharedPart, signal?: AbortSignal): Promise<void>;
  /** Sets these attributes and tags, and leaves all others. */
  change(
    part: SharedPart,
    to: { readonly attributes: Readonly<Record<string, string>>; readonly tags: Tags },
    signal?: AbortSignal,
  ): Promise<void>;
}
