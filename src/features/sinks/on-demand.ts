/** Connections that are opened on demand, and again after a loss. */

interface Connection {
  /** Settles when the connection has ended, for any reason. */
  closed(): Promise<unknown>;
  close(): Promise<void>;
}

/** Opens the connection on demand. Reconnecting by libraries is off: the sink's retry delays apply. */
export function createConnection<Opened extends Connection>(
  open: (signal: AbortSignal) => Promise<Opened>,
) {
  let opening: Promise<Opened> | null = null;
  let opened: Opened | null = null;
  const closing = new AbortController();

  const start = async () => {
    try {
      const connection = await open(closing.signal);
      if (closing.signal.aborted) await connection.close();
      opened = connection;
      void connection.closed().then(clear, clear);
      return connection;
    } catch (error) {
      clear();
      throw error;
    }
  };
  const clear = () => {
    opening = null;
    opened = null;
  };
  return {
    current: (): Promise<Opened> => {
      opening ??= start();
      return opening;
    },
    close: async () => {
      closing.abort();
      await opened?.close();
    },
  };
}
