import { keysContract } from '../support/identity/keys-contract.ts';
import { openTwoSqlite } from '../support/stores/two-sqlite.ts';

keysContract('one SQLite file', openTwoSqlite);
