/** The documentation of the version that runs: help, error codes and runbooks without the internet. */
import { z } from 'zod';
import { must } from './fields.ts';
import type { Row, RowKey } from './row.ts';

/** Longer than any name of a page or a picture. */
const NAME_LENGTH_MAX = 100;

const name = (what: string) =>
  z
    .string(must(`must be the name of a ${what}`))
    .regex(/^[A-Za-z0-9.-]+$/, `must be the name of a ${what}`)
    .max(NAME_LENGTH_MAX, `must be the name of a ${what}`);
const file = name('file').describe('The name, as the pages name it.');

const page = {
  scope: 'none',
  answer: z.string().describe('A page, a picture or the style sheet.'),
  status: 200,
  media: 'text/html',
  errors: ['request.not-found', 'docs.not-built'],
} as const;

export const docsRows = {
  'GET /docs': {
    operation: 'findDocs',
    summary: 'Redirects to the documentation.',
    scope: 'none',
    status: 302,
    errors: [],
    example: {},
  },
  'GET /docs/': { ...page, operation: 'getDocs', summary: 'Returns the first page of the documentation.', example: {} },
  'GET /docs/{file}': {
    ...page,
    operation: 'getDocsFile',
    summary: 'Returns a page of the documentation.',
    params: z.object({ file }),
    example: { params: { file: 'concepts.html' } },
  },
  'GET /docs/{section}/{file}': {
    ...page,
    operation: 'getDocsSectionFile',
    summary: 'Returns a page of a section, or a picture.',
    params: z.object({ section: name('section').describe('The section, such as `reference`.'), file }),
    example: { params: { section: 'reference', file: 'error-codes.html' } },
  },
} as const satisfies Record<RowKey, Row>;
