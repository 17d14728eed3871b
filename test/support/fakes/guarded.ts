/** The same port, of which each method, or each of `only`, waits for `check` before it is called; what that throws is the answer. */
export function guarded<Port extends object>(
  port: Port,
  check: (method: string, args: readonly unknown[]) => unknown,
  only: readonly (keyof Port)[] = Object.keys(port) as (keyof Port)[],
): Port {
  type Method = (...args: readonly unknown[]) => unknown;
  const methods = only.map((name) => [
    name,
    async (...args: readonly unknown[]) => {
      await check(String(name), args);
      return (port[name] as Method)(...args);
    },
  ]);
  return { ...port, ...(Object.fromEntries(methods) as Partial<Port>) };
}
