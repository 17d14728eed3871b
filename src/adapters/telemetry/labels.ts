/**
 * Label values of metrics and attributes of traces whose names in the code have changed since the first version. They
 * keep their old values, because dashboards and alerts depend on them.
 */

/** A superseded write is one that the store refused because it holds something newer; a late task belongs to an earlier turn. */
const renamed = ['superseded', 'late'] as const;
type Renamed = (typeof renamed)[number];

/** The label value of a name. */
export function labelOf<Name extends string>(name: Name): Exclude<Name, Renamed> | 'stale' {
  return isUnchanged(name) ? name : 'stale';
}

function isUnchanged<Name extends string>(name: Name): name is Exclude<Name, Renamed> {
  return !renamed.some((each) => each === name);
}
