CREATE TABLE owners (
    id uuid PRIMARY KEY, given_name text, surname text, company_name text, mobile varchar(30),
    email_address varchar(120), street text, zip varchar(10), city text,
    created_on timestamptz NOT NULL DEFAULT now(), last_modified timestamptz, is_deleted boolean DEFAULT false);
CREATE TABLE species (id serial PRIMARY KEY, label text);
CREATE TABLE breeds (id serial PRIMARY KEY, species_id int REFERENCES species, label text);
CREATE TABLE "Pets" (
    "petId" serial PRIMARY KEY, "ownerId" uuid REFERENCES owners, "petName" text, "speciesId" int REFERENCES species,
    "breedId" int REFERENCES breeds, gender char(1), "isNeutered" boolean, dob date, "coatColour" text,
    weight numeric(6, 2), "chipNumber" varchar(20), "deceasedOn" date, "isActive" boolean, warnings text,
    "createdAt" timestamptz, "updatedAt" timestamptz);
CREATE TABLE staff (staff_no int PRIMARY KEY, full_name text, phone text, active boolean);
CREATE TABLE appointment_types (id serial PRIMARY KEY, name text, length_minutes int, colour varchar(7));
CREATE TABLE appointment_status (id int PRIMARY KEY, name text);
CREATE TABLE appointments (
    id serial PRIMARY KEY, pet_id int REFERENCES "Pets", staff_no int REFERENCES staff,
    type_id int REFERENCES appointment_types, status_id int REFERENCES appointment_status,
    starts_at timestamp, ends_at timestamp, urgent boolean, complaint text, created_at timestamp,
    branch_code varchar(4) NOT NULL);
CREATE TABLE visits (
    id serial PRIMARY KEY, appointment_id int REFERENCES appointments, pet_id int REFERENCES "Pets",
    vet_id int REFERENCES staff, state varchar(10), severity int, visit_date timestamp,
    signed_at timestamp, created timestamp, client_summary text, diagnosis text, aftercare text,
    internal_notes text);
CREATE TABLE invoices (
    id serial PRIMARY KEY, invoice_no varchar(12), owner_id uuid REFERENCES owners, status varchar(12),
    invoice_date timestamp, due_date date, currency char(3), net_amount numeric(10, 2),
    vat_amount numeric(10, 2), gross numeric(10, 2), paid numeric(10, 2), created_at timestamp);
CREATE TABLE invoice_items (
    id serial PRIMARY KEY, invoice_id int REFERENCES invoices, pet_id int REFERENCES "Pets",
    description text, qty numeric(8, 2), unit_price numeric(10, 2), vat_rate numeric(5, 2),
    line_total numeric(10, 2));
CREATE TABLE payments (
    id serial PRIMARY KEY, invoice_id int REFERENCES invoices, received_at timestamp,
    amount numeric(10, 2), method varchar(10));
CREATE TABLE suppliers (id serial PRIMARY KEY, name text);
CREATE TABLE products (
    sku varchar(20) PRIMARY KEY, product_name text, category varchar(20), unit varchar(10),
    qty_on_hand numeric(8, 2), reorder_level numeric(8, 2), expiry_date date, retail_price numeric(10, 2),
    cost_price numeric(10, 2), shelf varchar(10), batch_no varchar(20),
    supplier_id int REFERENCES suppliers, updated_at timestamp);
CREATE TABLE working_hours (
    id serial PRIMARY KEY, staff_no int REFERENCES staff, weekday int, start_time time, end_time time);
CREATE TABLE time_off (
    id serial PRIMARY KEY, staff_no int REFERENCES staff, from_time timestamp, until_time timestamp);
CREATE TABLE appointment_log (id serial PRIMARY KEY, appointment_id int, action text, at timestamp);

INSERT INTO owners SELECT
    md5(i::text)::uuid, (ARRAY['Ann', 'Ben', 'Cleo', 'Dan'])[1 + i % 4] || i, 'Miller' || i, NULL,
    '+44 20 7946 0' || (100 + i), 'owner' || i || '@example.org', i || ' High Street', 'N' || i, 'London',
    now(), now(), i % 20 = 0
    FROM generate_series(1, 60) i;
INSERT INTO species (label) VALUES ('Dog'), ('Cat'), ('Rabbit');
INSERT INTO breeds (species_id, label) SELECT 1 + i % 3, 'Breed ' || i FROM generate_series(1, 30) i;
INSERT INTO "Pets" ("ownerId", "petName", "speciesId", "breedId", gender, "isNeutered", dob, "coatColour",
    weight, "chipNumber", "deceasedOn", "isActive", warnings, "createdAt", "updatedAt")
    SELECT md5((1 + i % 60)::text)::uuid, 'Rex' || i, 1 + i % 3, 1 + i % 30,
    (ARRAY['M', 'F', 'U'])[1 + i % 3], i % 2 = 0, date '2020-01-01' + i, 'black ' || i, 4.5 + i, '9850000000' || (10000 + i),
    CASE WHEN i % 9 = 0 THEN date '2025-05-01' END, i % 7 > 0, CASE WHEN i % 5 = 0 THEN 'bites;scratches' END,
    now(), now() FROM generate_series(1, 90) i;
INSERT INTO staff SELECT i, 'Dr ' || i || ' Smith', '+44 20 7946 0999', i < 5 FROM generate_series(1, 5) i;
INSERT INTO appointment_types (name, length_minutes, colour) VALUES
    ('Vaccination', 15, '#AA0000'), ('Surgery', 60, '#00AA00'), ('Check-up', 30, '#0000AA');
INSERT INTO appointment_status VALUES (1, 'Booked'), (2, 'Confirmed'), (3, 'Checked in'), (4, 'In room'),
    (5, 'Completed'), (6, 'Cancelled'), (7, 'No show');
INSERT INTO appointments (pet_id, staff_no, type_id, status_id, starts_at, ends_at, urgent, complaint, created_at, branch_code)
    SELECT 1 + i % 90, 1 + i % 5, 1 + i % 3, 1 + i % 7, timestamp '2026-03-02 09:00' + i * interval '45 minutes',
    timestamp '2026-03-02 09:30' + i * interval '45 minutes', i % 8 = 0, 'Limping ' || i, timestamp '2026-02-01 10:15' + i * interval '1 hour', 'MAIN'
    FROM generate_series(1, 200) i;
INSERT INTO visits (appointment_id, pet_id, vet_id, state, severity, visit_date, signed_at, created, client_summary, diagnosis, aftercare, internal_notes)
    SELECT i, 1 + i % 90, 1 + i % 5, (ARRAY['open', 'signed'])[1 + i % 2], 1 + i % 3, timestamp '2026-03-02 09:00' + i * interval '45 minutes',
    timestamp '2026-03-02 10:00' + i * interval '45 minutes', timestamp '2026-03-02 09:01', 'All went well ' || i, 'Sprain ' || i, 'Rest ' || i, 'x' || i FROM generate_series(1, 100) i;
INSERT INTO invoices (invoice_no, owner_id, status, invoice_date, due_date, currency, net_amount, vat_amount, gross, paid, created_at)
    SELECT 'INV' || (1000 + i), md5((1 + i % 60)::text)::uuid, (ARRAY['draft', 'sent', 'part paid', 'paid', 'void'])[1 + i % 5],
    timestamp '2026-03-02 12:30' + i * interval '1 hour', date '2026-04-01' + i, 'GBP', 100 + i, 20, 120 + i, i, timestamp '2026-03-02 12:30' FROM generate_series(1, 120) i;
INSERT INTO invoice_items (invoice_id, pet_id, description, qty, unit_price, vat_rate, line_total)
    SELECT 1 + i % 120, 1 + i % 90, 'Consultation ' || i, 1, 100, 20, 100 FROM generate_series(1, 300) i;
INSERT INTO payments (invoice_id, received_at, amount, method)
    SELECT 1 + i % 120, timestamp '2026-03-05 12:30' + i * interval '1 hour', 50 + i, (ARRAY['card', 'cash'])[1 + i % 2] FROM generate_series(1, 100) i;
INSERT INTO suppliers (name) VALUES ('Acme Pharma'), ('Northern Feeds');
INSERT INTO products SELECT 'SKU-2026-' || (100 + i), 'Product ' || i, (ARRAY['food', 'drug'])[1 + i % 2], 'box', i, 5, date '2027-01-01' + i,
    9.9 + i, 5 + i, 'A' || i, 'LOT' || i, 1 + i % 2, now() FROM generate_series(1, 50) i;
INSERT INTO working_hours (staff_no, weekday, start_time, end_time)
    SELECT 1 + i % 5, 1 + i / 5, '09:00', '17:00' FROM generate_series(0, 24) i;
INSERT INTO time_off (staff_no, from_time, until_time) VALUES (1, '2026-07-01 00:00', '2026-07-15 00:00'), (2, '2026-08-01 12:30', '2026-08-02 12:00');
INSERT INTO appointment_log (appointment_id, action, at) SELECT i, 'created', now() FROM generate_series(1, 50) i;
