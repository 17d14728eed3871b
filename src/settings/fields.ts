/** Kinds of settings that several groups of them have. */
import { z } from 'zod';

/** A whole number from `min` to `max`. */
export const integer = (min: number, max: number, fallback: number) =>
  z
    .string()
    .trim()
    .regex(/^\d{1,12}$/, `must be a whole number from ${min} to ${max}`)
    .default(String(fallback))
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
