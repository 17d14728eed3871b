import { readerMatrix } from '../contracts/reader-matrix.ts';
import { openSqliteStore } from '../contracts/sqlite.ts';
import { isLong } from '../support/breadth.ts';

readerMatrix('SQLite', openSqliteStore, isLong ? 20 : 1);
