export interface FoldedRecord {
  readonly bucket: string;
  readonly change: 'delete' | 'tags' | 'other';
  readonly sentAtMs: number;
  readonly eventTimeMs: number | undefined;
  readonly reason: string;
  readonly key?: string;
}
export interface Folding {
  readonly isPermitted: boolean;
  fold(record: FoldedRecord, signal?: AbortSignal): Promise<void>;
}
