CREATE TABLE tbl_adressen (
    AdrNr INT AUTO_INCREMENT PRIMARY KEY, AdrTyp CHAR(1), Anrede VARCHAR(10), Vorname VARCHAR(40), Nachname VARCHAR(40),
    Firma VARCHAR(60), Strasse VARCHAR(60), PLZ VARCHAR(8), Ort VARCHAR(40), Telefon VARCHAR(30), Handy VARCHAR(30),
    EMail VARCHAR(80), geloescht TINYINT(1) NOT NULL DEFAULT 0, angelegt DATETIME, geaendert DATETIME) ENGINE=InnoDB;
CREATE TABLE tbl_tiere (
    TierNr INT AUTO_INCREMENT PRIMARY KEY, AdrNr INT, Tiername VARCHAR(40), Tierart VARCHAR(20), Rasse VARCHAR(40),
    Geschlecht CHAR(2), kastriert CHAR(1), Geburtsdatum DATE, verstorben DATE, angelegt DATETIME,
    geaendert DATETIME, geloescht TINYINT(1) NOT NULL DEFAULT 0);
CREATE TABLE tbl_tier_merkmale (
    id INT AUTO_INCREMENT PRIMARY KEY, TierNr INT, Merkmal VARCHAR(20), Wert VARCHAR(80));
CREATE TABLE tbl_terminarten (ArtNr INT AUTO_INCREMENT PRIMARY KEY, Bezeichnung VARCHAR(40), Dauer INT, Farbe INT);
CREATE TABLE tbl_termine (
    TerminNr INT AUTO_INCREMENT PRIMARY KEY, TierNr INT, BehandlerNr INT, ArtNr INT, Datum DATE, Uhrzeit TIME, DauerMin INT,
    Status VARCHAR(20), Notfall CHAR(1), Grund VARCHAR(200), erfasst DATETIME, Mandant INT NOT NULL) ENGINE=InnoDB;
CREATE TABLE tbl_behandlungen (
    BehNr INT AUTO_INCREMENT PRIMARY KEY, TerminNr INT, TierNr INT, BehandlerNr INT, Status VARCHAR(20), Prioritaet INT,
    Beginn DATETIME, freigegeben DATETIME, erfasst DATETIME, Zusammenfassung TEXT, Diagnose TEXT, Empfehlung TEXT);
CREATE TABLE tbl_rechnungen (
    ReNr INT AUTO_INCREMENT PRIMARY KEY, Rechnungsnummer VARCHAR(20), AdrNr INT, Status VARCHAR(20), Rechnungsdatum DATETIME,
    faellig DATE, Waehrung CHAR(3), Netto DECIMAL(10, 2), MwSt DECIMAL(10, 2), Brutto DECIMAL(10, 2), erfasst DATETIME);
CREATE TABLE tbl_rechnungspositionen (
    PosNr INT AUTO_INCREMENT PRIMARY KEY, ReNr INT, TierNr INT, Bezeichnung VARCHAR(80), Menge DECIMAL(8, 2), Einzelpreis DECIMAL(10, 2),
    MwStSatz DECIMAL(5, 2), Gesamtpreis DECIMAL(10, 2));
CREATE TABLE tbl_zahlungen (
    ZahlNr INT AUTO_INCREMENT PRIMARY KEY, ReNr INT, Zahlungsdatum DATETIME, Betrag DECIMAL(10, 2), Zahlungsart VARCHAR(10));
CREATE TABLE tbl_artikel (
    ArtikelNr VARCHAR(20) PRIMARY KEY, Bezeichnung VARCHAR(60), Warengruppe VARCHAR(20), Einheit VARCHAR(10), Bestand DECIMAL(8, 2),
    Mindestbestand DECIMAL(8, 2), Verfallsdatum DATE, VKPreis DECIMAL(10, 2), EKPreis DECIMAL(10, 2), Lagerort VARCHAR(10),
    ChargenNr VARCHAR(20), LieferantNr INT, geaendert DATETIME);
CREATE TABLE tbl_sprechzeiten (id INT AUTO_INCREMENT PRIMARY KEY, BehandlerNr INT, Wochentag INT, von TIME, bis TIME);
CREATE TABLE tbl_urlaub (id INT AUTO_INCREMENT PRIMARY KEY, BehandlerNr INT, von DATETIME, bis DATETIME);

INSERT INTO tbl_adressen (AdrTyp, Anrede, Vorname, Nachname, Firma, Strasse, PLZ, Ort, Telefon, Handy, EMail, geloescht, angelegt, geaendert)
    SELECT IF(seq <= 4, 'T', IF(seq <= 8, 'L', 'K')), 'Frau', CONCAT('Eva', seq), CONCAT('Muster', seq), NULL, CONCAT('Hauptstr. ', seq),
    '10115', 'Berlin', CONCAT('030 1234', seq + 100), CONCAT('0170 5551', seq + 100), CONCAT('k', seq, '@example.org'), seq % 25 = 0,
    '2024-02-03 10:11:12', '2025-02-03 10:11:12' FROM seq_1_to_80;
INSERT INTO tbl_tiere (AdrNr, Tiername, Tierart, Rasse, Geschlecht, kastriert, Geburtsdatum, verstorben, angelegt, geaendert, geloescht)
    SELECT 9 + seq % 70, CONCAT('Bello', seq), ELT(1 + seq % 3, 'Hund', 'Katze', 'Pferd'), CONCAT('Rasse ', seq), ELT(1 + seq % 3, 'm', 'w', 'u'),
    ELT(1 + seq % 2, 'J', 'N'), '2020-01-01' + INTERVAL seq DAY, IF(seq % 9 = 0, '2025-05-01', NULL), '2024-02-03 10:11:12', '2025-02-03 10:11:12', seq % 30 = 0
    FROM seq_1_to_120;
INSERT INTO tbl_tier_merkmale (TierNr, Merkmal, Wert)
    SELECT 1 + seq % 120, ELT(1 + seq % 4, 'Gewicht', 'Chipnummer', 'Fellfarbe', 'Warnhinweis'),
    ELT(1 + seq % 4, CONCAT(seq % 40, ',5'), CONCAT('2760981', seq), CONCAT('braun ', seq), CONCAT('bissig ', seq)) FROM seq_1_to_480;
INSERT INTO tbl_terminarten (Bezeichnung, Dauer, Farbe) VALUES ('Impfung', 15, 16711680), ('Operation', 60, 65280), ('Beratung', 30, 255);
INSERT INTO tbl_termine (TierNr, BehandlerNr, ArtNr, Datum, Uhrzeit, DauerMin, Status, Notfall, Grund, erfasst, Mandant)
    SELECT 1 + seq % 120, 1 + seq % 4, 1 + seq % 3, '2026-03-02' + INTERVAL seq DAY, MAKETIME(8 + seq % 9, 15, 0), 30,
    ELT(1 + seq % 6, 'geplant', 'bestätigt', 'wartet', 'erledigt', 'abgesagt', 'nicht erschienen'), ELT(1 + seq % 2, 'J', 'N'),
    CONCAT('lahmt ', seq), '2026-01-02 10:11:12', 1 FROM seq_1_to_200;
INSERT INTO tbl_behandlungen (TerminNr, TierNr, BehandlerNr, Status, Prioritaet, Beginn, freigegeben, erfasst, Zusammenfassung, Diagnose, Empfehlung)
    SELECT seq, 1 + seq % 120, 1 + seq % 4, ELT(1 + seq % 2, 'offen', 'abgeschlossen'), 1 + seq % 3, '2026-03-02 09:10:00' + INTERVAL seq HOUR,
    '2026-03-02 09:40:00' + INTERVAL seq HOUR, '2026-03-02 09:10:00', CONCAT('alles gut ', seq), CONCAT('Zerrung ', seq), CONCAT('Ruhe ', seq) FROM seq_1_to_100;
INSERT INTO tbl_rechnungen (Rechnungsnummer, AdrNr, Status, Rechnungsdatum, faellig, Waehrung, Netto, MwSt, Brutto, erfasst)
    SELECT CONCAT('R2026-', seq), 9 + seq % 70, ELT(1 + seq % 5, 'Entwurf', 'versandt', 'teilbezahlt', 'bezahlt', 'storniert'), '2026-03-02 09:10:00' + INTERVAL seq HOUR,
    '2026-04-02', 'EUR', 100 + seq, 19, 119 + seq, '2026-03-02 09:10:00' FROM seq_1_to_120;
INSERT INTO tbl_rechnungspositionen (ReNr, TierNr, Bezeichnung, Menge, Einzelpreis, MwStSatz, Gesamtpreis)
    SELECT 1 + seq % 120, 1 + seq % 120, CONCAT('Beratung ', seq), 1, 50, 19, 50 FROM seq_1_to_300;
INSERT INTO tbl_zahlungen (ReNr, Zahlungsdatum, Betrag, Zahlungsart)
    SELECT 1 + seq % 120, '2026-03-05 09:10:00' + INTERVAL seq HOUR, 20 + seq, ELT(1 + seq % 2, 'bar', 'EC') FROM seq_1_to_100;
INSERT INTO tbl_artikel SELECT CONCAT('ART-2026-', seq), CONCAT('Mittel ', seq), ELT(1 + seq % 2, 'Futter', 'Arznei'), 'Stk', seq, 5, '2027-01-01' + INTERVAL seq DAY,
    9.9 + seq, 5 + seq, CONCAT('R', seq), CONCAT('CH', seq), 5 + seq % 4, '2026-01-02 10:11:12' FROM seq_1_to_50;
INSERT INTO tbl_sprechzeiten (BehandlerNr, Wochentag, von, bis) SELECT 1 + seq % 4, 1 + seq % 5, '08:00', '17:00' FROM seq_1_to_20;
INSERT INTO tbl_urlaub (BehandlerNr, von, bis) VALUES (1, '2026-07-01 00:00:00', '2026-07-15 00:00:00'), (2, '2026-08-01 12:30:00', '2026-08-02 12:00:00');
