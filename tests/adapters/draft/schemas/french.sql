-- A French product: people in one table told apart by a code, side tables of codes with labels, who
-- owns which animal with dates, batches of what is in stock, rows that are hidden. Local time.
CREATE TABLE personnes (id_personne INTEGER PRIMARY KEY, genre TEXT, nom TEXT, prenom TEXT, raison_sociale TEXT,
  adresse TEXT, code_postal TEXT, ville TEXT, supprime INTEGER NOT NULL DEFAULT 0, date_creation TEXT,
  date_modif TEXT);
CREATE TABLE genres (code TEXT PRIMARY KEY, libelle TEXT);
CREATE TABLE telephones (id_tel INTEGER PRIMARY KEY, id_personne INTEGER REFERENCES personnes, type TEXT,
  numero TEXT, defaut INTEGER);
CREATE TABLE courriels (id_mail INTEGER PRIMARY KEY, id_personne INTEGER REFERENCES personnes, courriel TEXT);
CREATE TABLE especes (id_espece INTEGER PRIMARY KEY, libelle TEXT);
CREATE TABLE races (id_race INTEGER PRIMARY KEY, id_espece INTEGER REFERENCES especes, libelle TEXT);
CREATE TABLE animaux (id_animal INTEGER PRIMARY KEY, nom TEXT, id_espece INTEGER REFERENCES especes,
  id_race INTEGER REFERENCES races, sexe TEXT, sterilise INTEGER, date_naissance TEXT, robe TEXT, poids REAL,
  puce TEXT, date_deces TEXT, supprime INTEGER NOT NULL DEFAULT 0, date_creation TEXT, date_modif TEXT);
CREATE TABLE proprietaires (id_prop INTEGER PRIMARY KEY, id_animal INTEGER REFERENCES animaux,
  id_personne INTEGER REFERENCES personnes, date_debut TEXT, date_fin TEXT);
CREATE TABLE types_rdv (id_type INTEGER PRIMARY KEY, libelle TEXT, duree INTEGER);
CREATE TABLE etats_rdv (id_etat INTEGER PRIMARY KEY, libelle TEXT);
CREATE TABLE rendez_vous (id_rdv INTEGER PRIMARY KEY, id_animal INTEGER REFERENCES animaux,
  id_veto INTEGER REFERENCES personnes, id_type INTEGER REFERENCES types_rdv, debut TEXT, fin TEXT,
  id_etat INTEGER REFERENCES etats_rdv, urgence INTEGER, motif TEXT, date_creation TEXT);
CREATE TABLE consultations (id_consult INTEGER PRIMARY KEY, id_rdv INTEGER REFERENCES rendez_vous,
  id_animal INTEGER REFERENCES animaux, id_veto INTEGER REFERENCES personnes, debut TEXT, date_validation TEXT,
  diagnostic TEXT, date_creation TEXT);
CREATE TABLE factures (id_facture INTEGER PRIMARY KEY, numero TEXT, id_client INTEGER REFERENCES personnes,
  etat TEXT, date_emission TEXT, date_echeance TEXT, total_ht NUMERIC, total_tva NUMERIC, total_ttc NUMERIC);
CREATE TABLE lignes_facture (id_ligne INTEGER PRIMARY KEY, id_facture INTEGER REFERENCES factures,
  id_animal INTEGER REFERENCES animaux, libelle TEXT, quantite NUMERIC, prix_unitaire NUMERIC, taux_tva NUMERIC,
  total_ht NUMERIC);
CREATE TABLE reglements (id_reglement INTEGER PRIMARY KEY, id_facture INTEGER REFERENCES factures,
  date_reglement TEXT, montant NUMERIC, mode TEXT);
CREATE TABLE produits (id_produit INTEGER PRIMARY KEY, designation TEXT, famille TEXT, reference TEXT,
  unite TEXT, seuil INTEGER, prix_vente NUMERIC, prix_achat NUMERIC, emplacement TEXT, date_modif TEXT);
CREATE TABLE lots (id_lot INTEGER PRIMARY KEY, id_produit INTEGER REFERENCES produits, numero_lot TEXT,
  quantite INTEGER, date_peremption TEXT);
CREATE TABLE utilisateurs (id_util INTEGER PRIMARY KEY, login TEXT, nom TEXT, mot_de_passe TEXT, droits TEXT);
CREATE TABLE villes (id_ville INTEGER PRIMARY KEY, nom TEXT, code_postal TEXT);
CREATE TABLE horaires (id_horaire INTEGER PRIMARY KEY, id_veto INTEGER REFERENCES personnes, jour INTEGER,
  heure_debut TEXT, heure_fin TEXT);
