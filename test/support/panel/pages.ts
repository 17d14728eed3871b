/** Every page of the panel, with what the tours need of it. A new page needs a row: test/panel/texts.test.ts fails without one. */
import { HOSTILE } from '../fakes/hostile.ts';

export interface PanelPage {
  /** As the address has it. */
  readonly name: string;
  /** The rest of the address. */
  readonly choices?: Readonly<Record<string, string>>;
  /** The beginning of its heading. */
  readonly heading: string;
  /** A user is shown that it is not permitted. */
  readonly isForAdmins?: true;
  /** The buttons that open dialogs of an administrator. */
  readonly dialogs?: readonly RegExp[];
}

export const panelPages: readonly PanelPage[] = [
  { name: 'overview', heading: 'Overview', isForAdmins: true },
  { name: 'overview', choices: { wall: '1' }, heading: 'No known difference', isForAdmins: true },
  { name: 'buckets', heading: 'Buckets' },
  { name: 'add', heading: 'Add bucket', isForAdmins: true },
  { name: 'add', choices: { bucket: 'stray' }, heading: 'Add bucket', isForAdmins: true },
  {
    name: 'bucket',
    choices: { bucket: 'photos' },
    heading: 'Bucket photos',
    dialogs: [/^Re-Index and Repair/],
  },
  { name: 'bucket', choices: { bucket: 'photos', prefix: 'a/' }, heading: 'Bucket photos' },
  { name: 'bucket', choices: { bucket: 'photos', tab: 'changes' }, heading: 'Bucket photos' },
  {
    name: 'bucket',
    choices: { bucket: 'photos', tab: 'connection' },
    heading: 'Bucket photos',
    dialogs: [/^Disconnect…/],
  },
  {
    name: 'bucket',
    choices: { bucket: 'photos', tab: 'connection', source: 'eventbridge', enrich: 'head' },
    heading: 'Bucket photos',
  },
  { name: 'unknown', heading: 'No such page' },
  { name: 'search', choices: { query: 'cat size>1' }, heading: 'Search' },
  { name: 'search', choices: { query: 'bucket:photos is:deleted' }, heading: 'Search' },
  { name: 'object', choices: { bucket: 'photos', key: HOSTILE }, heading: '">' },
  { name: 'activity', heading: 'Activity', isForAdmins: true },
  { name: 'job', choices: { id: 'job-1' }, heading: 'Re-index photos', isForAdmins: true },
  {
    name: 'letters',
    heading: 'Dead letters',
    isForAdmins: true,
    dialogs: [/^Replay/, /^Discard/],
  },
  {
    name: 'keys',
    heading: 'API keys',
    dialogs: [/^Create key/, /^Revoke/],
  },
  { name: 'keys', choices: { of: 'all' }, heading: 'API keys', dialogs: [/^Revoke/] },
  {
    name: 'people',
    heading: 'People',
    isForAdmins: true,
    dialogs: [/^Add grant/, /^Remove/, /^Make an administrator/, /^Disable/],
  },
  { name: 'audit', heading: 'Audit', isForAdmins: true },
];

/** The query that leads to a page. */
export function queryTo({ name, choices = {} }: PanelPage): string {
  return `?${new URLSearchParams({ page: name, ...choices }).toString()}`;
}
