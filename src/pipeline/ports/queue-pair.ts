/**
 * What `tally queue create` reads and makes in AWS. Every function throws `connect.denied` (a RequestError with the missing
 * action) and the faults `connect.unavailable`, `connect.credentials` and `connect.quota`.
 */
export interface QueueMaker {
  /** The account of the credentials. */
  account(signal?: AbortSignal): Promise<string>;
  /** The queue with this name in the region of the settings: its URL, and all its attributes as SQS answers them. */
  queueNamed(name: string, signal?: AbortSignal): Promise<NamedQueue | 'absent'>;
  /** Makes a queue. SQS refuses it if one with this name exists and has other attributes. */
  createQueue(name: string, attributes: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void>;
  /** Sets these attributes of the queue, and leaves all others. */
  setAttributes(url: string, attributes: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<void>;
}

export interface NamedQueue {
  readonly url: string;
  readonly attributes: Readonly<Record<string, string>>;
}
