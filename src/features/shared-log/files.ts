/** Small files that all nodes share. */

import type { Connections } from './connection.ts';
import type { SharedFiles } from './terms.ts';

/** Table and function of files. */
export const fileSql = `
    CREATE TABLE earshot.file (
      name text COLLATE "C" PRIMARY KEY,
      version bigint NOT NULL,
      content bytea
    );

    -- Replaces or removes a file; returns its version, which grows with each change.
    CREATE FUNCTION earshot.write_file(file_name text, new_content bytea) RETURNS bigint
    LANGUAGE plpgsql VOLATILE AS $$
    DECLARE
      new_version bigint;
    BEGIN
      PERFORM earshot.begin_durable(false);
      INSERT INTO earshot.file AS known VALUES (file_name, 1, new_content)
      ON CONFLICT (name) DO UPDATE SET version = known.version + 1, content = excluded.content
      RETURNING version INTO new_version;
      RETURN new_version;
    END $$;
`;

export function createFiles({ query }: Connections): SharedFiles {
  return {
    versions: async () => {
      const rows = await query<{ name: string; version: string }>(
        'SELECT name, version FROM earshot.file',
      );
      return new Map(rows.map(({ name, version }) => [name, Number(version)]));
    },
    read: async (name) => {
      const [row] = await query<{ content: Uint8Array | null }>(
        'SELECT content FROM earshot.file WHERE name = $1',
        [name],
      );
      return row?.content ? new TextDecoder().decode(row.content) : null;
    },
    write: async (name, content) => {
      const bytes = content === null ? null : Buffer.from(content);
      const [row] = await query<{ version: string }>(
        'SELECT earshot.write_file($1, $2) AS version',
        [name, bytes],
      );
      return Number(row?.version);
    },
  };
}
