/** The thread that reads large pages. */
import { serveReaders } from '../host/reader-thread.ts';
import { pageReaders } from './page-readers.ts';

serveReaders(pageReaders);
