/** The answer, or the signal's reason: what does not heed its signal is not waited for. */
export async function inTime<Answer>(answer: Promise<Answer>, signal: AbortSignal): Promise<Answer> {
  const ended = Promise.withResolvers<never>();
  const end = (): void => ended.reject(signal.reason);
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  try {
    return await Promise.race([answer, ended.promise]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}
