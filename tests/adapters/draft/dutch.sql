CREATE TABLE klant (
    klantnr INTEGER PRIMARY KEY, voornaam TEXT, tussenvoegsel TEXT, achternaam TEXT NOT NULL,
    straat TEXT, huisnr TEXT, postcode TEXT, plaats TEXT, mobiel TEXT, vastnr TEXT, mailadres TEXT,
    aangemaakt_op TEXT, laatst_gewijzigd TEXT
);
CREATE TABLE medew (
    medewnr INTEGER PRIMARY KEY, voorn TEXT, achtern TEXT, functie TEXT, in_dienst INTEGER
);
CREATE TABLE huisdier (
    diernr INTEGER PRIMARY KEY, klantnr INTEGER NOT NULL, roepnaam TEXT, diersoort TEXT, ras TEXT,
    geslacht TEXT, gecastreerd INTEGER, geboortedatum TEXT, kleur TEXT, gewicht REAL,
    chipnr TEXT, bijzonderheden TEXT, overleden_op TEXT, ingeschreven TEXT, gewijzigd TEXT
);
CREATE TABLE afspraaksoort (soortnr INTEGER PRIMARY KEY, omschrijving TEXT, tijdsduur INTEGER, kleur TEXT);
CREATE TABLE afspraak (
    afspraaknr INTEGER PRIMARY KEY, diernr INTEGER NOT NULL, klantnr INTEGER NOT NULL,
    medewnr INTEGER NOT NULL, soortnr INTEGER, aanvang TEXT NOT NULL, eindtijd TEXT NOT NULL,
    klacht TEXT, spoed INTEGER NOT NULL DEFAULT 0, toestand TEXT NOT NULL, aangemaakt TEXT NOT NULL
);
CREATE TABLE rooster (
    roosternr INTEGER PRIMARY KEY, medewnr INTEGER, weekdag INTEGER, van TEXT, tot TEXT
);
CREATE TABLE afwezig (
    afwezignr INTEGER PRIMARY KEY, medewnr INTEGER, vanaf TEXT, tot_en_met TEXT, reden TEXT
);
CREATE TABLE teller (naam TEXT PRIMARY KEY, stand INTEGER NOT NULL);
CREATE TABLE consult (
    consultnr INTEGER PRIMARY KEY, diernr INTEGER, medewnr INTEGER, afspraaknr INTEGER,
    consultdatum TEXT, toestand TEXT, samenvatting TEXT, diagnose TEXT, nazorg TEXT
);
CREATE TABLE rekening (
    rekeningnr INTEGER PRIMARY KEY, nummer TEXT, klantnr INTEGER, toestand TEXT, rekeningdatum TEXT,
    vervaldatum TEXT, totaal_excl REAL, btw_bedrag REAL, totaal REAL
);
CREATE TABLE rekeningregel (
    regelnr INTEGER PRIMARY KEY, rekeningnr INTEGER, diernr INTEGER, omschrijving TEXT,
    aantal REAL, stuksprijs REAL, btw_perc REAL, regelbedrag REAL
);
CREATE TABLE betaling (
    betalingnr INTEGER PRIMARY KEY, rekeningnr INTEGER, betaald_op TEXT, bedrag REAL, betaalwijze TEXT
);
CREATE TABLE artikel (
    artikelnr INTEGER PRIMARY KEY, naam TEXT, artikelcode TEXT, artikelgroep TEXT, eenheid TEXT,
    voorraad REAL, minimumvoorraad REAL, houdbaar_tot TEXT, verkoopprijs REAL, inkoopprijs REAL,
    partijnr TEXT, leverancier TEXT, locatie TEXT, gewijzigd TEXT
);
CREATE TABLE enting (entnr INTEGER PRIMARY KEY, diernr INTEGER, entstof TEXT, entdatum TEXT, herhalen_op TEXT);
CREATE TABLE verzekering (polisnr TEXT PRIMARY KEY, diernr INTEGER, maatschappij TEXT);
CREATE TABLE labuitslag (uitslagnr INTEGER PRIMARY KEY, diernr INTEGER, bepaling TEXT, uitslag TEXT);
CREATE TABLE recept (receptnr INTEGER PRIMARY KEY, diernr INTEGER, artikelnr INTEGER, dosering TEXT);
INSERT INTO klant VALUES (1,'Jan','van der','Berg','Dorpsstraat','12','1234 AB','Utrecht','0612345678','0301234567','jan@example.org','2020-01-02 10:00:00','2021-01-02 10:00:00'),
    (2,'Piet',NULL,'Smit','Kerkweg','3a','2345 BC','Leiden','0687654321',NULL,NULL,'2020-02-02 10:00:00','2022-01-02 10:00:00');
INSERT INTO medew VALUES (1,'Anna','Visser','dierenarts',1),(2,'Bram','Bos','assistent',1);
INSERT INTO huisdier VALUES (1,1,'Bello','hond','labrador','M',1,'2019-03-04','bruin',30.5,'528140000000001','bijt',NULL,'2020-01-02 10:00:00','2021-01-02 10:00:00'),
    (2,2,'Minoes','kat','Europees korthaar','V',0,'2018-05-06','zwart',4.2,NULL,NULL,'2024-01-01','2020-02-02 10:00:00','2024-01-02 10:00:00');
INSERT INTO afspraaksoort VALUES (1,'Controle',15,'#00ff00'),(2,'Vaccinatie',20,'#ff0000');
INSERT INTO afspraak VALUES (1,1,1,1,1,'2026-03-02 09:00:00','2026-03-02 09:15:00','hoest',0,'gepland','2026-02-01 10:00:00'),
    (2,2,2,1,2,'2026-03-03 09:00:00','2026-03-03 09:20:00','enting',1,'afgezegd','2026-02-02 10:00:00');
INSERT INTO rooster VALUES (1,1,1,'09:00','17:00'),(2,2,2,'09:00','17:00');
INSERT INTO afwezig VALUES (1,1,'2026-07-01 00:00:00','2026-07-15 00:00:00','vakantie');
INSERT INTO teller VALUES ('afspraak',3),('rekening',9);
INSERT INTO consult VALUES (1,1,1,1,'2026-03-02 09:05:00','afgesloten','gehoest','verkouden','rust');
INSERT INTO rekening VALUES (1,'2026-0001',1,'betaald','2026-03-02','2026-04-01',100.0,21.0,121.0);
INSERT INTO rekeningregel VALUES (1,1,1,'Consult',1,100.0,21.0,100.0);
INSERT INTO betaling VALUES (1,1,'2026-03-05 12:00:00',121.0,'pin');
INSERT INTO artikel VALUES (1,'Ontworming','ONT1','medicijn','stuk',12,5,'2027-01-01',12.5,6.0,'P1','Dopharma','kast 1','2026-01-01 10:00:00');
INSERT INTO enting VALUES (1,1,'rabies','2026-01-01','2027-01-01');
INSERT INTO verzekering VALUES ('P-1',1,'Petplan');
INSERT INTO labuitslag VALUES (1,1,'glucose','5.1');
INSERT INTO recept VALUES (1,1,1,'2dd1');
