/** The kinds of records that the product stores about itself. Kinds are added, never renamed: older workers list theirs beside newer ones. */
export const stateKinds = [
  'bucket',
  'unconnected',
  'gap',
  'gap-budget',
  'job',
  'job-examples',
  'job-slot',
  'range',
  'dead-letter',
  'lock',
  'schedule',
] as const;
export type StateKind = (typeof stateKinds)[number];
