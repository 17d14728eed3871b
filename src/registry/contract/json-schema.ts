/** Schemas of the contract as JSON Schema, for OpenAPI and the docs. */
import { z } from 'zod';

export type JsonSchema = z.core.JSONSchema.BaseSchema;

interface Described {
  readonly schema: JsonSchema;
  /** The named schemas that it refers to, as `#/$defs/NAME`. */
  readonly named: Readonly<Record<string, JsonSchema>>;
}

/** Returns the JSON Schema for senders: fields with a default may be left out, and answers may have more fields in a later version. */
export function jsonSchemaOf(schema: z.ZodType): Described {
  const {
    $schema: _dialect,
    $defs: named = {},
    ...rest
  } = z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    // only the types are read-only: in OpenAPI, a read-only field is one that requests must not contain
    override: ({ jsonSchema }) => void delete jsonSchema.readOnly,
  });
  return { schema: rest, named };
}

/** The fields that hold whole numbers. */
export function numericFields(schema: z.ZodObject | undefined): ReadonlySet<string> {
  const fields = Object.entries(schema === undefined ? {} : (jsonSchemaOf(schema).schema.properties ?? {}));
  return new Set(fields.flatMap(([name, field]) => (typeof field === 'object' && field.type === 'integer' ? [name] : [])));
}
