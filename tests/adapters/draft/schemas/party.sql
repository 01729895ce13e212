-- One table of parties to which all else is tied; roles, addresses and contacts in tables of their
-- own; slot rows prepared in the diary; stock as the sum of moves over a tree of locations. UTC.
CREATE TABLE res_user (id INTEGER PRIMARY KEY, login TEXT, password_hash TEXT, name TEXT, active INTEGER,
  create_date TEXT);
CREATE TABLE party_party (id INTEGER PRIMARY KEY, code TEXT, name TEXT, lastname TEXT, is_person INTEGER,
  active INTEGER NOT NULL, create_date TEXT, write_date TEXT, create_uid INTEGER REFERENCES res_user);
CREATE TABLE party_address (id INTEGER PRIMARY KEY, party INTEGER REFERENCES party_party, street TEXT,
  zip TEXT, city TEXT, sequence INTEGER, active INTEGER);
CREATE TABLE party_contact_mechanism (id INTEGER PRIMARY KEY, party INTEGER REFERENCES party_party,
  type TEXT, value TEXT, active INTEGER);
CREATE TABLE vet_owner (id INTEGER PRIMARY KEY, party INTEGER NOT NULL UNIQUE REFERENCES party_party,
  since TEXT);
CREATE TABLE vet_professional (id INTEGER PRIMARY KEY, party INTEGER NOT NULL UNIQUE REFERENCES party_party,
  licence TEXT);
CREATE TABLE vet_species (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE vet_breed (id INTEGER PRIMARY KEY, name TEXT, species INTEGER REFERENCES vet_species);
CREATE TABLE vet_patient (id INTEGER PRIMARY KEY, puid TEXT, name TEXT, owner INTEGER REFERENCES vet_owner,
  species INTEGER REFERENCES vet_species, breed INTEGER REFERENCES vet_breed, sex TEXT, dob TEXT,
  deceased INTEGER, dod TEXT, create_date TEXT, write_date TEXT);
CREATE TABLE vet_visit_kind (id INTEGER PRIMARY KEY, name TEXT, duration INTEGER);
CREATE TABLE vet_appointment (id INTEGER PRIMARY KEY, patient INTEGER REFERENCES vet_patient,
  professional INTEGER REFERENCES vet_professional, kind INTEGER REFERENCES vet_visit_kind,
  appointment_date TEXT, appointment_date_end TEXT, state TEXT, urgency TEXT, comments TEXT,
  create_date TEXT, create_uid INTEGER REFERENCES res_user);
CREATE TABLE vet_evaluation (id INTEGER PRIMARY KEY, appointment INTEGER REFERENCES vet_appointment,
  patient INTEGER REFERENCES vet_patient, professional INTEGER REFERENCES vet_professional,
  evaluation_start TEXT, evaluation_end TEXT, state TEXT, diagnosis TEXT, directions TEXT, create_date TEXT);
CREATE TABLE account_invoice (id INTEGER PRIMARY KEY, number TEXT, type TEXT,
  party INTEGER REFERENCES party_party, state TEXT, invoice_date TEXT, untaxed_amount NUMERIC,
  tax_amount NUMERIC, total_amount NUMERIC, create_date TEXT);
CREATE TABLE account_invoice_line (id INTEGER PRIMARY KEY, invoice INTEGER REFERENCES account_invoice,
  description TEXT, quantity NUMERIC, unit_price NUMERIC, amount NUMERIC);
CREATE TABLE product_category (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE product_template (id INTEGER PRIMARY KEY, name TEXT, category INTEGER REFERENCES product_category,
  list_price NUMERIC, cost_price NUMERIC, default_uom TEXT, write_date TEXT);
CREATE TABLE product_product (id INTEGER PRIMARY KEY, template INTEGER NOT NULL REFERENCES product_template,
  code TEXT);
CREATE TABLE stock_location (id INTEGER PRIMARY KEY, name TEXT, type TEXT,
  parent INTEGER REFERENCES stock_location);
CREATE TABLE stock_move (id INTEGER PRIMARY KEY, product INTEGER REFERENCES product_product,
  from_location INTEGER REFERENCES stock_location, to_location INTEGER REFERENCES stock_location,
  quantity NUMERIC, state TEXT, effective_date TEXT, create_date TEXT);
