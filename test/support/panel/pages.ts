/** Every page of the panel, with what the tours need of it. A new page needs a row: test/panel/pages.test.ts fails without one. */
import type { Page } from 'playwright-core';
import type { PanelCaller } from '../../../src/panel/facts.ts';
import { HOSTILE } from '../fakes/hostile.ts';

export interface PanelDialog {
  /** The button that opens it. */
  readonly opener: RegExp;
  /** What must be done on the page before. */
  readonly before?: (page: Page) => Promise<void>;
}

export interface PanelPage {
  /** As the address has it. */
  readonly name: string;
  /** The rest of the address. */
  readonly choices?: Readonly<Record<string, string>>;
  /** The beginning of its heading. */
  readonly heading: string;
  /** Who may see it. The others are shown that they may not. */
  readonly callers: readonly PanelCaller[];
  /** The dialogs of an administrator. */
  readonly dialogs?: readonly PanelDialog[];
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
    dialogs: [{ opener: /^Re-Index and Repair/ }],
  },
  { name: 'bucket', choices: { bucket: 'photos', prefix: 'a/' }, heading: 'Bucket photos', callers: everyone },
  { name: 'bucket', choices: { bucket: 'photos', tab: 'changes' }, heading: 'Bucket photos', callers: everyone },
  {
    name: 'bucket',
    choices: { bucket: 'photos', tab: 'connection' },
    heading: 'Bucket photos',
    callers: everyone,
    dialogs: [
      {
        opener: /^Save…/,
        before: async (page) => {
          await page.getByLabel('Enrichment').selectOption('head');
        },
      },
      { opener: /^Disconnect…/ },
      { opener: /^Show the plan/ },
      { opener: /^Pause notification…/ },
    ],
  },
  { name: 'unknown', heading: 'No such page', callers: everyone },
  { name: 'search', choices: { query: 'cat size>1' }, heading: 'Search', callers: everyone },
  { name: 'search', choices: { query: 'cat', in: 'photos', key: HOSTILE }, heading: 'Search', callers: everyone },
  { name: 'search', choices: { query: 'bucket:photos is:deleted' }, heading: 'Search', callers: everyone },
  { name: 'object', choices: { bucket: 'photos', key: HOSTILE }, heading: '">', callers: everyone },
  { name: 'activity', heading: 'Activity', callers: machineAndAdmin },
  { name: 'job', choices: { id: 'job-1' }, heading: 'Re-index photos', callers: machineAndAdmin },
  {
    name: 'letters',
    heading: 'Dead letters',
    callers: machineAndAdmin,
    dialogs: [{ opener: /^Replay/ }, { opener: /^Discard/ }],
  },
  {
    name: 'keys',
    heading: 'API keys',
    callers: ['user', 'admin'],
    dialogs: [{ opener: /^Create key/ }, { opener: /^A secret has leaked/ }, { opener: /^Revoke/ }],
  },
  { name: 'keys', choices: { of: 'all' }, heading: 'API keys', callers: ['user', 'admin'], dialogs: [{ opener: /^Revoke/ }] },
  {
    name: 'people',
    heading: 'People',
    callers: ['admin'],
    dialogs: [{ opener: /^Add grant/ }, { opener: /^Remove/ }, { opener: /^Make an administrator/ }, { opener: /^Disable/ }],
  },
  { name: 'audit', heading: 'Audit', callers: machineAndAdmin },
];

/** The query that leads to a page. */
export function queryTo({ name, choices = {} }: PanelPage): string {
  return `?${new URLSearchParams({ page: name, ...choices }).toString()}`;
}
