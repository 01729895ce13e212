-- The sample clinic: the tables of an old French desktop product, in its own words.
--
-- What a reader should expect of it:
--   * times are the wall clock of Europe/Paris as text, without a zone;
--   * '0000-00-00' and '0000-00-00 00:00:00' mean "no date", and so does NULL;
--   * money and quantities are text with a comma, thousands parted by a blank: '1 234,50';
--   * flags are 'O' (oui) and 'N' (non), sometimes NULL, sometimes 0 and 1;
--   * no foreign key, no check, nothing that forbids two bookings at one time;
--   * defaults help nobody: a row inserted without ACTIF is an inactive one.

CREATE TABLE PERSONNES (          -- one table for every party
    ID_PERS     INTEGER PRIMARY KEY,
    GENRE_PERS  TEXT,             -- 'C' client, 'V' veterinarian, 'F' supplier
    CIVILITE    TEXT,
    NOM         TEXT,             -- '' for a company; blanks around it are common
    PRENOM      TEXT,
    RAISON_SOC  TEXT,
    ADRESSE1    TEXT,
    ADRESSE2    TEXT,
    CODE_POSTAL TEXT,
    VILLE       TEXT,
    ACTIF       TEXT DEFAULT 'N',
    DT_CREATION TEXT,             -- one moment for all that came over from the product before
    DT_MODIF    TEXT              -- NULL or zeros until the first change
);

CREATE TABLE COORDONNEES (        -- zero to four per person
    ID_COORD    INTEGER PRIMARY KEY,
    ID_PERS     INTEGER,
    TYPE        TEXT,             -- 'T' telephone, 'X' fax, 'M' e-mail
    VALEUR      TEXT,
    PREFERE     TEXT DEFAULT 'N',
    ACTIF       TEXT DEFAULT 'N',
    DT_CREATION TEXT
);
CREATE INDEX IX_COORD_PERS ON COORDONNEES (ID_PERS, TYPE);

CREATE TABLE ESPECES (
    CODE_ESP TEXT PRIMARY KEY,
    LIBELLE  TEXT
);

CREATE TABLE ANIMAUX (
    ID_ANIMAL    INTEGER PRIMARY KEY,
    NOM          TEXT,
    CODE_ESP     TEXT,
    RACE         TEXT,
    SEXE         TEXT,            -- 'M', 'F', 'I' not known
    STERILISE    TEXT,            -- 'O', 'N', NULL never asked
    DT_NAISSANCE TEXT,
    DT_DECES     TEXT,
    ACTIF        TEXT DEFAULT 'N',
    SUPPRIME     INTEGER DEFAULT 0,
    DT_CREATION  TEXT,
    DT_MODIF     TEXT
);

CREATE TABLE PROPRIETAIRES (      -- dated: DT_DEBUT <= day < DT_FIN, zeros mean "still"
    ID_PROP   INTEGER PRIMARY KEY,
    ID_ANIMAL INTEGER,
    ID_PERS   INTEGER,
    ROLE      TEXT,               -- 'P' owner; 'D' keeper, who is not the owner
    DT_DEBUT  TEXT,
    DT_FIN    TEXT
);
CREATE INDEX IX_PROP_ANIMAL ON PROPRIETAIRES (ID_ANIMAL, ROLE);
CREATE INDEX IX_PROP_PERS ON PROPRIETAIRES (ID_PERS);

CREATE TABLE CHAMPS_SUPPL (       -- one row per extra field, a missing value is no row
    ID_CHAMP  INTEGER PRIMARY KEY,
    TABLE_NOM TEXT,
    ID_FICHE  INTEGER,
    CHAMP     TEXT,
    TYPE_VAL  TEXT,               -- 'T' text, 'N' number, 'D' date
    VALEUR    TEXT
);
CREATE INDEX IX_CHAMPS ON CHAMPS_SUPPL (TABLE_NOM, ID_FICHE, CHAMP);

CREATE TABLE TYPES_RDV (
    ID_TYPE   INTEGER PRIMARY KEY,
    LIBELLE   TEXT,
    DUREE_MIN INTEGER,
    COULEUR   INTEGER,            -- 0xRRGGBB
    ACTIF     TEXT DEFAULT 'N'
);

CREATE TABLE RDV (
    ID_RDV    INTEGER PRIMARY KEY,
    NUM_RDV   TEXT,               -- 'R2026-000123', counted in COMPTEURS
    ID_ANIMAL INTEGER,
    ID_VETO   INTEGER,            -- PERSONNES, NULL on some old rows
    ID_TYPE   INTEGER,
    D_DEBUT   TEXT,
    D_FIN     TEXT,
    MOTIF     TEXT,
    URGENT    TEXT,
    STATUT    TEXT,               -- P C R E T A N, NULL means planned
    DT_SAISIE TEXT,
    REF_EXT   TEXT                -- what another program that booked calls it
);
CREATE UNIQUE INDEX IX_RDV_NUM ON RDV (NUM_RDV);
CREATE INDEX IX_RDV_REF ON RDV (REF_EXT);
CREATE INDEX IX_RDV_VETO ON RDV (ID_VETO, D_DEBUT);
CREATE INDEX IX_RDV_ANIMAL ON RDV (ID_ANIMAL);
CREATE INDEX IX_RDV_DEBUT ON RDV (D_DEBUT);

CREATE TABLE COMPTEURS (
    NOM    TEXT PRIMARY KEY,
    VALEUR INTEGER                -- the last number given
);

CREATE TABLE RDV_JOURNAL (        -- every booking writes here too
    ID_JOURNAL INTEGER PRIMARY KEY,
    ID_RDV     INTEGER,
    ACTION     TEXT,              -- 'C' created, 'M' changed, 'A' cancelled
    QUI        TEXT,
    D_ACTION   TEXT
);
CREATE INDEX IX_JOURNAL_RDV ON RDV_JOURNAL (ID_RDV);

CREATE TABLE HORAIRES (
    ID_HOR  INTEGER PRIMARY KEY,
    ID_VETO INTEGER,
    JOUR    INTEGER,              -- 1 Monday .. 7 Sunday
    H_DEBUT TEXT,
    H_FIN   TEXT                  -- not after H_DEBUT: the shift ends on the next day
);
CREATE INDEX IX_HORAIRES_VETO ON HORAIRES (ID_VETO, JOUR);

CREATE TABLE ABSENCES (
    ID_ABS  INTEGER PRIMARY KEY,
    ID_VETO INTEGER,
    D_DEBUT TEXT,
    D_FIN   TEXT,
    MOTIF   TEXT
);
CREATE INDEX IX_ABSENCES_VETO ON ABSENCES (ID_VETO, D_DEBUT);

CREATE TABLE CONSULTATIONS (
    ID_CONS        INTEGER PRIMARY KEY,
    ID_RDV         INTEGER,       -- NULL for those who came without a booking
    ID_ANIMAL      INTEGER,
    ID_VETO        INTEGER,
    ETAT           TEXT,          -- 'E' in progress, 'V' validated
    IMPORTANCE     TEXT,          -- '1', '2', '3'
    D_DEBUT        TEXT,
    D_VALID        TEXT,
    RESUME         TEXT,
    DIAGNOSTIC     TEXT,
    CONSIGNES      TEXT,          -- for the owner
    NOTES_INTERNES TEXT,          -- for the house only
    SUPPRIME       INTEGER DEFAULT 0,
    DT_CREATION    TEXT
);
CREATE INDEX IX_CONS_RDV ON CONSULTATIONS (ID_RDV);
CREATE INDEX IX_CONS_ANIMAL ON CONSULTATIONS (ID_ANIMAL);

CREATE TABLE FACTURES (
    ID_FACT     INTEGER PRIMARY KEY,
    NUMERO      TEXT,             -- 'F2026-00042', '' for a draft
    ID_PERS     INTEGER,          -- who pays, not always the animal's owner
    ETAT        TEXT,             -- 'B' draft, 'E' issued, 'P' partly paid, 'S' settled, 'A' cancelled
    D_EMISSION  TEXT,
    D_ECHEANCE  TEXT,
    DEVISE      TEXT,
    TOTAL_HT    TEXT,             -- '' for a draft: sum the lines
    TOTAL_TVA   TEXT,
    TOTAL_TTC   TEXT,
    DT_CREATION TEXT
);
CREATE INDEX IX_FACT_PERS ON FACTURES (ID_PERS);

CREATE TABLE LIGNES_FACT (
    ID_LIGNE INTEGER PRIMARY KEY,
    ID_FACT  INTEGER,
    LIBELLE  TEXT,
    QTE      TEXT,
    PU_HT    TEXT,
    TAUX_TVA TEXT,
    TOTAL_HT TEXT,
    LIEN     TEXT                 -- 'ANIMAL:123' or ''
);
CREATE INDEX IX_LIGNES_FACT ON LIGNES_FACT (ID_FACT);

CREATE TABLE REGLEMENTS (
    ID_REGL INTEGER PRIMARY KEY,
    ID_FACT INTEGER,
    D_REGL  TEXT,
    MONTANT TEXT,
    MODE    TEXT                  -- 'CB' card, 'CH' cheque, 'ES' cash, 'VI' transfer
);
CREATE INDEX IX_REGL_FACT ON REGLEMENTS (ID_FACT);

CREATE TABLE ARTICLES (
    ID_ART      INTEGER PRIMARY KEY,
    LIBELLE     TEXT,
    FAMILLE     TEXT,             -- 'MED', 'ALI', 'MAT', 'VAC', 'STU'
    REFERENCE   TEXT,
    UNITE       TEXT,
    PRIX_VENTE  TEXT,
    PRIX_ACHAT  TEXT,
    ID_FOURN    INTEGER,          -- PERSONNES
    EMPLACEMENT TEXT,
    ACTIF       TEXT DEFAULT 'N',
    DT_MODIF    TEXT
);

CREATE TABLE LOTS (               -- an article's stock is the sum of its lots, none is zero
    ID_LOT       INTEGER PRIMARY KEY,
    ID_ART       INTEGER,
    NUM_LOT      TEXT,
    QTE          TEXT,
    D_PEREMPTION TEXT
);
CREATE INDEX IX_LOTS_ART ON LOTS (ID_ART);
