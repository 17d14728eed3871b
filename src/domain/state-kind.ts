/** The kinds of state records that Tally stores. Kinds are added but never renamed, because older and newer workers share one store during an upgrade. */
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
  'queue',
  'lock',
  'schedule',
  'circuit',
  'connection',
  'installation',
] as const;
export type StateKind = (typeof stateKinds)[number];
