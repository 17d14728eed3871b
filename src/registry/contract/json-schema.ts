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

/** What is known of the contract's schemas, whose number is fixed. */
const knownNumericFields = new WeakMap<z.ZodObject, ReadonlySet<string>>();
const NO_FIELDS: ReadonlySet<string> = new Set();

/** The fields that hold whole numbers. */
export function numericFields(schema: z.ZodObject | undefined): ReadonlySet<string> {
  if (schema === undefined) return NO_FIELDS;
  const known = knownNumericFields.get(schema);
  if (known !== undefined) return known;
  const fields = new Set(
    Object.entries(jsonSchemaOf(schema).schema.properties ?? {}).flatMap(([name, field]) =>
      typeof field === 'object' && field.type === 'integer' ? [name] : [],
    ),
  );
  knownNumericFields.set(schema, fields);
  return fields;
}
