/** The same port, of which each method waits for `check` before it is called; what that throws is the answer. */
export function guarded<Port extends object>(port: Port, check: (method: string, args: readonly unknown[]) => unknown): Port {
  type Method = (...args: readonly unknown[]) => unknown;
  const methods = Object.entries(port).map(([name, method]: [string, Method]) => [
    name,
    async (...args: readonly unknown[]) => {
      await check(name, args);
      return method(...args);
    },
  ]);
  return Object.fromEntries(methods) as Port;
}
