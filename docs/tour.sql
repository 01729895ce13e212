-- A small practice for the tour of connecting.md. Make it with: sqlite3 practice.db < docs/tour.sql
CREATE TABLE owner (id INTEGER PRIMARY KEY, first_name TEXT, last_name TEXT NOT NULL, phone TEXT, email TEXT);
CREATE TABLE animal (id INTEGER PRIMARY KEY, owner_id INTEGER NOT NULL REFERENCES owner, name TEXT, kind TEXT, born TEXT);
CREATE TABLE doctor (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE visit_type (id INTEGER PRIMARY KEY, name TEXT NOT NULL, minutes INTEGER NOT NULL);
CREATE TABLE visit (id INTEGER PRIMARY KEY, animal_id INTEGER REFERENCES animal, doctor_id INTEGER REFERENCES doctor,
  type_id INTEGER REFERENCES visit_type, starts TEXT, ends TEXT, state TEXT, reason TEXT, entered TEXT);
CREATE TABLE opening (doctor_id INTEGER REFERENCES doctor, weekday INTEGER, opens TEXT, closes TEXT);
CREATE TABLE treatment (id INTEGER PRIMARY KEY, animal_id INTEGER REFERENCES animal, doctor_id INTEGER, visit_id INTEGER, treated TEXT);
CREATE TABLE bill (id INTEGER PRIMARY KEY, number TEXT, owner_id INTEGER REFERENCES owner, issued TEXT, total NUMERIC);
CREATE TABLE bill_line (id INTEGER PRIMARY KEY, bill_id INTEGER REFERENCES bill, text TEXT, price NUMERIC, quantity NUMERIC);
CREATE TABLE stock (id INTEGER PRIMARY KEY, name TEXT, quantity INTEGER, minimum INTEGER);
CREATE INDEX animal_owner ON animal (owner_id);
CREATE INDEX visit_doctor ON visit (doctor_id, starts);
CREATE INDEX bill_owner ON bill (owner_id);
CREATE INDEX line_bill ON bill_line (bill_id);
INSERT INTO owner VALUES (1, 'Ada', 'Berg', '+31 20 555 0101', 'ada@example.org'), (2, NULL, 'Cole', NULL, NULL);
INSERT INTO animal VALUES (1, 1, 'Max', 'D', '2019-04-01'), (2, 2, 'Luna', 'C', NULL);
INSERT INTO doctor VALUES (1, 'Dr Lind'), (2, 'Dr Moss');
INSERT INTO visit_type VALUES (1, 'Check-up', 30), (2, 'Vaccination', 15);
INSERT INTO visit VALUES (1, 1, 1, 1, '2026-01-12 09:00:00', '2026-01-12 09:30:00', 'D', 'limping', '2026-01-05 10:00:00'),
  (2, 2, 2, 2, '2026-01-13 10:00:00', '2026-01-13 10:15:00', 'X', NULL, '2026-01-06 11:00:00');
INSERT INTO opening SELECT d.id, w.value, '09:00', '17:00' FROM doctor d, json_each('[1,2,3,4,5]') w;
INSERT INTO treatment VALUES (1, 1, 1, 1, '2026-01-12 09:05:00');
INSERT INTO bill VALUES (1, 'B-1', 1, '2026-01-12', 48.40);
INSERT INTO bill_line VALUES (1, 1, 'Check-up', 48.40, 1);
INSERT INTO stock VALUES (1, 'Bandage', 4, 10), (2, 'Syringe', 200, 50);
