/** Schemas of the contract as JSON Schema, for OpenAPI and the docs. */
import { z } from 'zod';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

/** What is sent (`input`: fields with a default may be left out) or answered (`output`). */
export function jsonSchemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' });
  return rest;
}

/** The fields that hold whole numbers. */
export function numericFields(schema: z.ZodObject | undefined): ReadonlySet<string> {
  const properties = schema === undefined ? {} : (jsonSchemaOf(schema, 'input').properties ?? {});
  return new Set(
    Object.entries(properties).flatMap(([name, field]) => (typeof field === 'object' && field.type === 'integer' ? [name] : [])),
  );
}
