/** Version 3: summaries: texts by the request they answered, the jobs that want them, and what was spent. */

export const summaries = {
  number: 3,
  name: 'summaries',
  /*
   * A text lies under the SHA-256 of its request, in a table that grows at its end. `doubts`, `doubted` and
   * `scope` are JSON, `verified` and `settled` 0 or 1. The id of a job is never given again, so that a late answer
   * cannot pass for another job's. `due_at_us` is the next try of a waiting job and the end of the lease of
   * an asking one: either way, from then on anybody may take it. `request_id` is the last request for it.
   * The template of a job without a text lies in its row. A request refers to a job that may be forgotten
   * already: what was spent stays spent.
   * The partial indexes hold the open jobs alone, which are few beside those that are over; the one on
   * `state` finds and counts the others. Tokens stand in the index on time, so that a budget is added up
   * without the table.
   */
  sql: `
    CREATE TABLE summary_text (
      key BLOB PRIMARY KEY CHECK (length(key) = 32),
      text TEXT NOT NULL,
      model TEXT,
      verified INTEGER NOT NULL,
      doubts TEXT NOT NULL,
      created_at_us INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE summary_job (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      kind TEXT NOT NULL,
      subject TEXT NOT NULL,
      revision INTEGER NOT NULL,
      product_id TEXT,
      product_name TEXT,
      subscription TEXT,
      position INTEGER,
      scope TEXT,
      state TEXT NOT NULL,
      attempts INTEGER NOT NULL,
      doubted TEXT,
      due_at_us INTEGER NOT NULL,
      request_id INTEGER,
      error TEXT,
      template TEXT,
      template_at_us INTEGER,
      text_key BLOB,
      requested_at_us INTEGER NOT NULL,
      UNIQUE (kind, subject)
    ) STRICT;
    CREATE INDEX summary_job_due ON summary_job (kind, due_at_us) WHERE state IN ('waiting', 'asking');
    CREATE INDEX summary_job_waiting_product ON summary_job (requested_at_us)
      WHERE state = 'waiting' AND kind = 'product';
    CREATE INDEX summary_job_product_id ON summary_job (product_id) WHERE product_id IS NOT NULL;
    CREATE INDEX summary_job_state ON summary_job (state);

    CREATE TABLE summary_request (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      job_id INTEGER NOT NULL,
      asked_at_us INTEGER NOT NULL,
      model TEXT NOT NULL,
      tokens INTEGER NOT NULL,
      settled INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX summary_request_asked ON summary_request (asked_at_us, tokens);
  `,
} as const;
