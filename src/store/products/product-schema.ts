/** The tables of the product index. Another version of them means a new file, built from the log. */

/** Raised with each change of the tables, or of what is derived from a record. */
export const productSchemaVersion = 3;

/*
 * `progress` is the cursor, with a mark of the notification there: should another log take the place of
 * the one that was indexed, such as a restored backup, that tells.
 *
 * `product` holds one narrow row for each product, in the order in which they were first heard of: its id
 * is the position of the first notification. What filters rarely ask for, and footprints, lie elsewhere.
 *
 * `life_*` and `gone_*` are what decides the state (see product-state.ts); the columns after them are
 * derived from the record at `record_position`. Attributes are REAL, since nothing makes an Integer
 * attribute whole. Ids are GUIDs, in which case does not matter.
 *
 * `product_event` holds what each notification told of which product, with the dates as its own record
 * had them: a later record changes the product's row, not these. Times of receipt have no index, which
 * would cost indexing 4% and 19 bytes each: the log's own leads to the positions.
 *
 * `product_name` finds any three letters of a name, without positions (detail=none), as names are compared
 * anyway. `product_box` finds boxes on the globe, sensed at a time, among a range of ids, under so many
 * clouds, all in units of alike size (box-units.ts): two boxes for a footprint that crosses the
 * antimeridian, with ids 2n and 2n+1.
 */
export const productSchema = `
  CREATE TABLE progress (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    mark TEXT,
    skipped INTEGER NOT NULL
  ) STRICT;
  INSERT INTO progress VALUES (1, 0, NULL, 0);

  CREATE TABLE product (
    id INTEGER PRIMARY KEY,
    product_id TEXT NOT NULL COLLATE NOCASE,
    received_at_us INTEGER NOT NULL,
    life_us INTEGER,
    life_position INTEGER,
    gone_us INTEGER,
    gone_record_us INTEGER,
    gone_position INTEGER,
    record_position INTEGER,
    deleted INTEGER NOT NULL,
    deletion_us INTEGER,
    deletion_cause TEXT,
    name TEXT,
    collection TEXT,
    platform_name TEXT,
    platform_serial TEXT,
    product_type TEXT,
    processing_level TEXT,
    sensing_start_us INTEGER,
    sensing_end_us INTEGER,
    publication_us INTEGER,
    modification_us INTEGER,
    size_bytes INTEGER,
    online INTEGER,
    cloud_cover REAL,
    orbit_number REAL,
    relative_orbit_number REAL,
    orbit_direction TEXT,
    tile TEXT,
    processing_baseline TEXT
  ) STRICT;
  CREATE UNIQUE INDEX product_by_id ON product (product_id);
  CREATE INDEX product_by_name ON product (name);
  CREATE INDEX product_by_collection ON product (collection, sensing_start_us);
  CREATE INDEX product_by_type ON product (product_type, sensing_start_us);
  CREATE INDEX product_by_sensing ON product (sensing_start_us);
  CREATE INDEX product_by_sensing_end ON product (sensing_end_us);
  CREATE INDEX product_by_publication ON product (publication_us);
  CREATE INDEX product_by_modification ON product (modification_us);
  CREATE INDEX product_by_deletion ON product (deletion_us) WHERE deleted = 1;
  CREATE INDEX product_by_orbit ON product (orbit_number);
  CREATE INDEX product_by_tile ON product (tile) WHERE tile IS NOT NULL;

  CREATE TABLE product_event (
    position INTEGER PRIMARY KEY,
    product INTEGER NOT NULL,
    subscription TEXT,
    event TEXT NOT NULL,
    event_us INTEGER,
    state_us INTEGER,
    notification_us INTEGER,
    received_us INTEGER NOT NULL,
    source TEXT NOT NULL
  ) STRICT;
  CREATE INDEX product_event_by_product ON product_event (product);

  CREATE TABLE product_footprint (
    id INTEGER PRIMARY KEY,
    geometry TEXT NOT NULL
  ) STRICT;
  CREATE VIRTUAL TABLE product_name USING fts5(
    name, content='', contentless_delete=1, detail='none', tokenize='trigram case_sensitive 1'
  );
  CREATE VIRTUAL TABLE product_box USING rtree(
    id, west, east, south, north, sensed_from, sensed_to, heard_from, heard_to, cloud_from, cloud_to
  );
`;
