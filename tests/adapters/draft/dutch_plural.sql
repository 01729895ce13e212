CREATE TABLE eigenaren (
    id INTEGER PRIMARY KEY, voornaam TEXT, tussenvoegsel TEXT, achternaam TEXT, bedrijfsnaam TEXT,
    telefoon TEXT
);
CREATE TABLE dieren (
    id INTEGER PRIMARY KEY, eigenaar_id INTEGER REFERENCES eigenaren(id), naam TEXT,
    diersoort TEXT, ras TEXT, geslacht TEXT, geboortedatum TEXT, overleden TEXT
);
CREATE TABLE dierenartsen (id INTEGER PRIMARY KEY, voornaam TEXT, achternaam TEXT);
CREATE TABLE afspraken (
    id INTEGER PRIMARY KEY, dier_id INTEGER REFERENCES dieren(id),
    dierenarts_id INTEGER REFERENCES dierenartsen(id), begin TEXT, einde TEXT, status TEXT,
    opmerking TEXT
);
INSERT INTO eigenaren VALUES (1,'Jan','van der','Berg',NULL,'06'),
    (2,NULL,NULL,NULL,'Kinderboerderij BV','06'), (3,'Piet','','Jansen','','06');
INSERT INTO dieren VALUES (1,1,'Rex','hond','x','M','2020-01-01',NULL),
    (2,2,'Tom','kat','y','V','2020-01-01','2024-01-01');
INSERT INTO dierenartsen VALUES (1,'An','Smit');
INSERT INTO afspraken VALUES (1,1,1,'2026-01-05 09:00','2026-01-05 09:30','gepland','x');
