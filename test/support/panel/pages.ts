/** Every page of the panel, with what the tours need of it. A new page needs a row: test/panel/pages.test.ts fails without one. */
import type { PanelCaller } from '../../../src/panel/facts.ts';
import { HOSTILE } from '../fakes/hostile.ts';

export interface PanelPage {
  /** As the address has it. */
  readonly name: string;
  /** The rest of the address. */
  readonly choices?: Readonly<Record<string, string>>;
  /** The beginning of its heading. */
  readonly heading: string;
  /** Who may see it. The others are shown that they may not. */
  readonly callers: readonly PanelCaller[];
  /** The buttons that open dialogs of an administrator. */
  readonly dialogs?: readonly RegExp[];
}

const everyone: readonly PanelCaller[] = ['local', 'user', 'admin'];
const machineAndAdmin: readonly PanelCaller[] = ['local', 'admin'];

export const panelPages: readonly PanelPage[] = [
  { name: 'overview', heading: 'Overview', callers: machineAndAdmin },
  { name: 'overview', choices: { wall: '1' }, heading: 'No known difference', callers: machineAndAdmin },
  { name: 'buckets', heading: 'Buckets', callers: everyone },
  { name: 'add', heading: 'Add bucket', callers: machineAndAdmin },
  { name: 'add', choices: { bucket: 'stray' }, heading: 'Add bucket', callers: machineAndAdmin },
  {
    name: 'bucket',
    choices: { bucket: 'photos' },
    heading: 'Bucket photos',
    callers: everyone,
    dialogs: [/^Re-Index and Repair/],
  },
  { name: 'bucket', choices: { bucket: 'photos', prefix: 'a/' }, heading: 'Bucket photos', callers: everyone },
  { name: 'bucket', choices: { bucket: 'photos', tab: 'changes' }, heading: 'Bucket photos', callers: everyone },
  {
    name: 'bucket',
    choices: { bucket: 'photos', tab: 'connection' },
    heading: 'Bucket photos',
    callers: everyone,
    dialogs: [/^Disconnect…/],
  },
  {
    name: 'bucket',
    choices: { bucket: 'photos', tab: 'connection', source: 'eventbridge', enrich: 'head' },
    heading: 'Bucket photos',
    callers: everyone,
  },
  { name: 'unknown', heading: 'No such page', callers: everyone },
  { name: 'search', choices: { query: 'cat size>1' }, heading: 'Search', callers: everyone },
  { name: 'search', choices: { query: 'bucket:photos is:deleted' }, heading: 'Search', callers: everyone },
  { name: 'object', choices: { bucket: 'photos', key: HOSTILE }, heading: '">', callers: everyone },
  { name: 'activity', heading: 'Activity', callers: machineAndAdmin },
  { name: 'job', choices: { id: 'job-1' }, heading: 'Re-index photos', callers: machineAndAdmin },
  {
    name: 'letters',
    heading: 'Dead letters',
    callers: machineAndAdmin,
    dialogs: [/^Replay/, /^Discard/],
  },
  {
    name: 'keys',
    heading: 'API keys',
    callers: ['user', 'admin'],
    dialogs: [/^Create key/, /^Revoke/],
  },
  { name: 'keys', choices: { of: 'all' }, heading: 'API keys', callers: ['user', 'admin'], dialogs: [/^Revoke/] },
  {
    name: 'people',
    heading: 'People',
    callers: ['admin'],
    dialogs: [/^Add grant/, /^Remove/, /^Make an administrator/, /^Disable/],
  },
  { name: 'audit', heading: 'Audit', callers: machineAndAdmin },
];

/** The query that leads to a page. */
export function queryTo({ name, choices = {} }: PanelPage): string {
  return `?${new URLSearchParams({ page: name, ...choices }).toString()}`;
}
