-- Everything that is, in one table of entities; everything that happens, in one of acts; what they
-- have beside that, in rows of names and values; who takes part in what, in a table of links.
CREATE TABLE lookups (lookup_id INTEGER PRIMARY KEY, kind TEXT, code TEXT, name TEXT);
CREATE TABLE users (user_id INTEGER PRIMARY KEY, user_name TEXT, password TEXT, active INTEGER);
CREATE TABLE entities (entity_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT, active INTEGER NOT NULL,
  created TEXT, updated TEXT);
CREATE TABLE entity_details (entity_id INTEGER REFERENCES entities, name TEXT, type TEXT, value TEXT,
  PRIMARY KEY (entity_id, name));
CREATE TABLE contacts (contact_id INTEGER PRIMARY KEY, party_id INTEGER REFERENCES entities, kind TEXT,
  detail TEXT, preferred INTEGER);
CREATE TABLE entity_links (id INTEGER PRIMARY KEY, kind TEXT, source_id INTEGER REFERENCES entities,
  target_id INTEGER REFERENCES entities, active_from TEXT, active_to TEXT);
CREATE TABLE acts (act_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, start_time TEXT, end_time TEXT,
  status TEXT, reason TEXT, created TEXT);
CREATE TABLE act_details (act_id INTEGER REFERENCES acts, name TEXT, type TEXT, value TEXT,
  PRIMARY KEY (act_id, name));
CREATE TABLE participations (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, act_id INTEGER REFERENCES acts,
  entity_id INTEGER REFERENCES entities);
CREATE TABLE act_amounts (act_id INTEGER PRIMARY KEY REFERENCES acts, total NUMERIC, tax NUMERIC,
  paid NUMERIC);
CREATE TABLE product_prices (price_id INTEGER PRIMARY KEY, kind TEXT, name TEXT, price NUMERIC,
  product_id INTEGER REFERENCES entities, start_time TEXT);
CREATE INDEX details_of ON entity_details (entity_id);
CREATE INDEX acts_of ON participations (act_id, kind);
