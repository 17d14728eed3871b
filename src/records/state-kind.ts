/** The kinds of records in the state store. Kinds are added but never renamed, because older and newer workers share one store during an upgrade. */
export const stateKinds = [
  'bucket',
  'unconnected',
  'gap',
  'gap-history',
  'job',
  'queue',
  'lock',
  'schedule',
  'process',
  'user',
  'api-key',
  'user-keys',
  'appointment',
  'login',
  'login-key',
  'session',
  'access',
  'event-hour',
  'probe',
] as const;
export type StateKind = (typeof stateKinds)[number];
