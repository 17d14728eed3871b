type OptionalName<T> = { [Name in keyof T]: undefined extends T[Name] ? Name : never }[keyof T];

/** The type of an object whose undefined properties were removed. */
export type Defined<T> = { readonly [Name in Exclude<keyof T, OptionalName<T>>]: T[Name] } & {
  readonly [Name in OptionalName<T>]?: Exclude<T[Name], undefined>;
};

/** Returns the object without its undefined properties. It takes a microsecond longer than spreads, so do not use it in code that runs for each event or key. */
export function defined<T extends object>(object: T): Defined<T>;
export function defined(object: object): object {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) if (value !== undefined) kept[name] = value;
  return kept;
}

/** Returns the object without these properties. Like {@link defined}, it is too slow for code that runs for each event or key. */
export function omit<T extends object, Name extends keyof T>(object: T, ...names: readonly Name[]): Omit<T, Name>;
export function omit(object: object, ...names: readonly string[]): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !names.includes(name)));
}
