"""What practice systems call things: in English, French, German, Spanish and Dutch, and for short.

Phrases are parted by commas; a name is compared word by word, and its plural is the same word.
"""

from adapters.draft.likeness import phrases


def _words(text: str) -> frozenset[str]:
    return frozenset(word for (word,) in phrases(text))


_ANIMAL = (
    "animal, animaux, patient, pat, pet, tier, haustier, tierstamm, mascota, paciente, dier, "
    "huisdier, patienten"
)
_CLIENT = (
    "client, customer, cust, owner, pet owner, proprietaire, kunde, kd, besitzer, tierhalter, "
    "halter, klant, eigenaar, eigenaren, debiteur, cliente, propietario, dueno, debitor, "
    "account holder"
)
_PARTY = (
    "person, personne, pers, persona, persoon, party, contact, kontakt, adresse, adress, "
    "adressen, address, relation, relatie, personen, people, tiers, partner, entity"
)
_VISIT = (
    "appointment, appt, apt, apmt, booking, rdv, rendez vous, rendezvous, termin, buchung, cita, "
    "turno, afspraak, afspraken, boeking, agenda, visit"
)
_VET = (
    "vet, veterinarian, veterinaire, veto, tierarzt, arzt, behandler, veterinario, dierenarts, "
    "dierarts, behandelaar, personeel, gebruiker, arts, doctor, practitioner, provider, "
    "praticien, staff, employee, mitarbeiter, medewerker, medew, mdw, empleado, user, benutzer, "
    "utilisateur, clinician, resource, personal"
)
_INVOICE = (
    "invoice, bill, inv, facture, fact, rechnung, rech, factura, factuur, facturen, rekening, "
    "nota, verkauf"
)
_LINE = "line, item, detail, ligne, position, pos, posten, zeile, linea, regel, row, entry"
_STOCK = (
    "stock, stock item, product, prod, article, artikel, art, item, inventory, inventaire, lager, "
    "lagerartikel, ware, articulo, producto, voorraad, artikelen, medicijn, geneesmiddel, "
    "medicine, medikament, produit"
)

# How a table of each resource may be called; an appointment type's has two words.
TABLES = {
    "clients": phrases(_CLIENT),
    "patients": phrases(_ANIMAL),
    "appointments": phrases(_VISIT),
    "consultations": phrases(
        "consultation, consult, cons, exam, examination, medical record, encounter, behandlung, "
        "untersuchung, consulta, consulten, behandeling, onderzoek, bezoek, visite, konsultation, "
        "befund, karteieintrag, visit"
    ),
    "invoices": phrases(_INVOICE),
    "stock": phrases(_STOCK),
    "appointmentTypes": tuple(
        (kind, *visit)
        for kind in ("type", "typ", "art", "tipo", "soort", "kind", "category", "motif", "reason")
        for visit in phrases(_VISIT)
    )
    + phrases(
        "terminart, service, prestation, leistung, servicio, dienst, visit type, soort afspraak, "
        "afspraaksoort, afspraaktype, verrichting, behandelsoort"
    ),
    "vets": phrases(_VET),
}
PARTY = phrases(_PARTY)
LINES = tuple(
    (line, *bill) for line in (w for (w,) in phrases(_LINE)) for bill in phrases(_INVOICE)
) + phrases(_LINE)
PAYMENTS = phrases(
    "payment, reglement, paiement, encaissement, zahlung, zahlungseingang, pago, cobro, betaling, "
    "ontvangst, receipt, pay"
)
BATCHES = phrases("batch, lot, charge, lote, partij, stock lot, stock batch, batchnummer")
MOVES = phrases(
    "move, movement, mouvement, bewegung, lagerbewegung, movimiento, mutatie, voorraadmutatie, "
    "bestand"
)
OWNERSHIPS = phrases(
    "ownership, owner, proprietaire, animal owner, besitzverhaeltnis, halter, tierhalter, besitz, "
    "propietario, eigendom, eigenaar, eigenaarschap, relation, link"
)
HOURS = phrases(
    "hours, working hours, opening hours, horaire, planning, roster, shift, arbeitszeit, "
    "sprechzeit, dienstplan, schedule, horario, turno, rooster, werktijd, werkrooster, "
    "dienstrooster, werkuren, openingstijd, availability, weekly hours, spreekuur"
)
ABSENCES = phrases(
    "absence, conge, leave, vacation, holiday, time off, urlaub, abwesenheit, fehlzeit, ausencia, "
    "vacaciones, afwezigheid, afwezig, verlof, vakantie, ziekte, sluiting, block, closure, "
    "sperrzeit, indisponibilite"
)
COUNTERS = phrases(
    "counter, compteur, zaehler, zahler, teller, contador, sequence, nummernkreis, numbering, "
    "numerotation, nummering, nummerreeks, volgnummer"
)
# Tables that are about something else than their name's first word.
ASIDE = _words(
    "log, logs, journal, hist, history, historique, historie, archive, archiv, old, bak, backup, "
    "tmp, temp, audit, protokoll, trash, sav, copy, import, export, setting, config, queue, "
    "vaccination, vaccinatie, enting, insurance, verzekering, lab, labuitslag, uitslag, "
    "prescription, recept"
)

_CREATED = (
    "created, created at, created on, creation, create, date added, added, inserted, cree, "
    "saisie, angelegt, erstellt, erfasst, anlage, anlagedatum, erfassung, creado, alta, "
    "aangemaakt, aangemaakt op, aanmaakdatum, ingevoerd, invoerdatum, ingeschreven, "
    "inschrijfdatum, aanmaak, entered"
)
_UPDATED = (
    "updated, updated at, modified, modif, modification, changed, last update, last change, maj, "
    "mise jour, geaendert, geandert, aenderung, anderung, aktualisiert, letzte aenderung, "
    "modificado, actualizado, gewijzigd, gewijzigd op, laatst gewijzigd, wijziging, "
    "wijzigingsdatum, bijgewerkt, mutatie, mutatiedatum, edited"
)
_STATUS = "status, state, statut, etat, stat, zustand, estado, staat, toestand, situation"
_NAME = (
    "name, nom, naam, nombre, label, libelle, lib, bezeichnung, bez, designation, omschrijving, "
    "titel, descripcion, title, description, benaming"
)
_FROM = (
    "start, begin, starts, from, debut, von, beginn, anfang, inicio, desde, van, vanaf, aanvang, "
    "begintijd, begindatum, starttijd, startdatum, ingang"
)
_TO = (
    "end, ends, until, to, fin, ende, bis, hasta, eind, einde, tot, tot en met, eindtijd, "
    "einddatum, finish"
)
_COLOR = "color, colour, couleur, farbe, kleur"

FIELDS = {
    "clients": {
        "firstName": "first name, fname, forename, given name, prenom, vorname, voornaam, nombre",
        "lastName": (
            "last name, lname, surname, family name, nom, nom famille, nachname, familienname, "
            "achternaam, apellido, apellidos, name, naam, full name, company, raison sociale, "
            "firma"
        ),
        "phone": (
            "phone, telephone, tel, mobile, mobile phone, cell, portable, telefon, telefonnummer, "
            "handy, mobil, telefono, movil, telefoon, telefoonnummer, telefoonnr, telnr, mobiel, "
            "mobielnr, gsm, phone number, tel nr, rufnummer, home phone"
        ),
        "email": "email, e mail, mail, courriel, correo, mel, emailadres, mailadres, email address",
        "createdAt": _CREATED,
        "updatedAt": _UPDATED,
        "address": (
            "address, street, adresse, rue, strasse, str, direccion, calle, adres, straat, "
            "straatnaam, address line, anschrift"
        ),
    },
    "patients": {
        "name": f"{_NAME}, rufname, roepnaam, animal name, tiername, diernaam, call name",
        "species": "species, espece, esp, tierart, spezies, art, especie, diersoort, soort, kind",
        "status": f"{_STATUS}, active, actif, aktiv, activo, actief",
        "breed": "breed, race, rasse, raza, ras",
        "sex": "sex, gender, sexe, geschlecht, sexo, geslacht",
        "neutered": (
            "neutered, spayed, castrated, sterilise, castre, kastriert, sterilisiert, castrado, "
            "esterilizado, gecastreerd, gesteriliseerd, desexed, kastration"
        ),
        "birthDate": (
            "birth date, birth, dob, date of birth, birthday, naissance, naiss, geburtsdatum, "
            "geburt, geboren, gebdat, geb, nacimiento, geboortedatum, geboorte, geboren op"
        ),
        "color": f"{_COLOR}, coat, robe, fell, fellfarbe, vacht, pelaje, capa, markings",
        "weightKg": "weight, weight kg, poids, gewicht, peso, kg",
        "createdAt": _CREATED,
        "updatedAt": _UPDATED,
        "microchip": (
            "microchip, chip, chip number, puce, transpondeur, identification, chipnr, "
            "chipnummer, transponder, microchip number, chip nr"
        ),
        "alerts": (
            "alert, alerts, warning, alerte, warnung, warnhinweis, hinweis, alerta, waarschuwing, "
            "bijzonderheden, let op, attentie, caution, temperament"
        ),
    },
    "appointments": {
        "status": f"{_STATUS}",
        "scheduledAt": (
            f"{_FROM}, scheduled, start time, starts at, date time, zeit, beginnt, datum tijd, "
            "tijdstip, when"
        ),
        "endTime": f"{_TO}, end time, ends at, endet",
        "isUrgent": (
            "urgent, urgence, emergency, priority, notfall, dringend, eilig, urgente, spoed, "
            "spoedgeval, urgency"
        ),
        "createdAt": _CREATED,
        "reason": (
            "reason, motif, grund, anlass, motivo, reden, complaint, purpose, notes, note, "
            "remark, bemerkung, betreff, opmerking, klacht, aanleiding, toelichting, comment, "
            "subject, observations"
        ),
    },
    "consultations": {
        "status": f"{_STATUS}, validated, locked, closed",
        "importance": (
            "importance, priority, severity, wichtigkeit, prioritaet, importancia, belang, "
            "prioriteit, ernst, level, urgency"
        ),
        "startedAt": (
            f"{_FROM}, started, started at, date, consultation date, visit date, datum, fecha, "
            "consultdatum, bezoekdatum, day, seen at"
        ),
        "validatedAt": (
            "validated, validated at, valid, validation, signed, signed at, closed at, "
            "freigegeben, freigabe, abgeschlossen, validado, gevalideerd, afgesloten, akkoord, "
            "ondertekend, goedgekeurd, finished at"
        ),
        "createdAt": _CREATED,
        "ownerSummary": (
            "summary, resume, zusammenfassung, resumen, samenvatting, verslag, owner summary, "
            "client summary, report"
        ),
        "ownerDiagnosis": (
            "diagnosis, diagnostic, diagnose, diagnostico, owner diagnosis, dx, befund"
        ),
        "ownerInstructions": (
            "instructions, consignes, anweisung, anweisungen, instrucciones, instructies, advies, "
            "owner instructions, home care, recommendations, aftercare, empfehlung, nazorg, "
            "indicaciones, discharge instructions"
        ),
    },
    "invoices": {
        "number": (
            "number, numero, num, nummer, nr, no, invoice number, invoice no, invoice nr, "
            "rechnungsnummer, rechnungsnr, renr, factuurnummer, factuurnr, rekeningnummer, "
            "rekeningnr, notanummer"
        ),
        "status": f"{_STATUS}",
        "issuedAt": (
            "issued, issued at, emission, invoice date, date, rechnungsdatum, datum, fecha, "
            "factuurdatum, rekeningdatum, notadatum, issue date, emitted, billed at, facture"
        ),
        "dueAt": (
            "due, due date, due on, echeance, faellig, fallig, faelligkeit, vencimiento, "
            "vervaldatum, vervalt, pay by, zahlbar"
        ),
        "currency": "currency, devise, waehrung, wahrung, moneda, valuta, divisa, munt, "
        "munteenheid",
        "subtotal": (
            "subtotal, sub total, net, total ht, montant ht, net total, netto, nettobetrag, "
            "subtotaal, totaal excl, bedrag excl, total excl, excl, base imponible, neto, "
            "amount excl tax, net amount"
        ),
        "taxTotal": (
            "tax, vat, tax total, total tva, tva, montant tva, mwst, ust, steuer, steuerbetrag, "
            "mwst betrag, iva, btw, vat amount, tax amount, btw bedrag, btw totaal"
        ),
        "total": (
            "total, gross, grand total, total ttc, ttc, montant ttc, brutto, bruttobetrag, "
            "gesamt, gesamtbetrag, betrag, summe, total amount, totaal, totaalbedrag, "
            "totaal incl, eindbedrag, importe, bruto, incl, amount"
        ),
        "amountPaid": (
            "paid, amount paid, paid amount, regle, paye, montant regle, bezahlt, gezahlt, "
            "bezahlter betrag, pagado, betaald, voldaan, ontvangen, total paid"
        ),
        "balance": (
            "balance, outstanding, solde, reste, offen, saldo, restbetrag, offener betrag, "
            "openstaand, restant, nog te betalen, pendiente, open amount, balance due"
        ),
        "createdAt": _CREATED,
    },
    "invoices.lines": {
        "unitPrice": (
            "unit price, price, prix unitaire, pu, pu ht, einzelpreis, epreis, preis, "
            "precio unitario, precio, stukprijs, stuksprijs, prijs, eenheidsprijs, tarief, rate"
        ),
        "quantity": (
            "quantity, qty, quantite, qte, menge, anzahl, cantidad, aantal, hoeveelheid, count, "
            "units"
        ),
        "taxRate": (
            "tax rate, vat rate, tva, taux tva, taux, mwst, mwst satz, steuersatz, iva, btw, "
            "btw tarief, btw percentage, tax percent, vat, tax"
        ),
        "total": (
            "total, line total, total ht, montant, betrag, gesamt, gesamtpreis, netto, importe, "
            "bedrag, totaal, regeltotaal, regelbedrag, amount, net amount"
        ),
        "description": (
            "description, libelle, designation, text, bezeichnung, beschreibung, descripcion, "
            "omschrijving, label, detail, leistung, concepto, name"
        ),
    },
    "invoices.payments": {
        "paidAt": (
            "paid, paid at, date, paid on, payment date, reglement, regl, paiement, datum, "
            "zahlungsdatum, gezahlt, fecha, betaald, betaald op, betaaldatum, ontvangen op, "
            "received, eingang"
        ),
        "amount": (
            "amount, montant, betrag, summe, importe, bedrag, total, paid amount, value, monto, "
            "zahlbetrag"
        ),
        "method": (
            "method, mode, moyen, type, art, zahlungsart, zahlart, forma, metodo, methode, "
            "betaalwijze, betaalmethode, betaalvorm, payment method, tender, means"
        ),
    },
    "stock": {
        "name": f"{_NAME}, product name, item name, article, produit, artikelname",
        "category": (
            "category, famille, categorie, group, gruppe, warengruppe, kategorie, categoria, "
            "groep, artikelgroep, class, family, type, artikelgruppe, rubriek"
        ),
        "reference": (
            "reference, ref, sku, code, article number, artikelnummer, artikelnr, artnr, "
            "artikelcode, bestelcode, referencia, product code, item code, ean, barcode, codigo, "
            "nummer"
        ),
        "unit": "unit, unite, einheit, eh, unidad, eenheid, uom, pack, verpackung, packung",
        "quantity": (
            "quantity, qty, on hand, quantite, qte, stock, bestand, menge, lagerbestand, "
            "existencia, cantidad, voorraad, aantal, quantity on hand, en stock, in stock"
        ),
        "reorderThreshold": (
            "reorder, threshold, reorder level, minimum, min stock, seuil, stock mini, "
            "mindestbestand, meldebestand, minbestand, minimo, stock minimo, minimumvoorraad, "
            "min, min qty, minimum stock, reorder point, bestelniveau, bestelpunt, bestelgrens, "
            "min voorraad"
        ),
        "expiresAt": (
            "expires, expires at, expiry, expiration, expiry date, peremption, dlu, ablauf, "
            "ablaufdatum, verfall, verfallsdatum, haltbar bis, caducidad, vervaldatum, houdbaar, "
            "houdbaar tot, houdbaarheidsdatum, tht, exp date, best before, use by"
        ),
        "updatedAt": _UPDATED,
        "salePrice": (
            "sale price, selling price, price, prix vente, pv, prix, verkaufspreis, vk, vkpreis, "
            "preis, vk preis, precio venta, pvp, verkoopprijs, prijs, retail price, list price"
        ),
        "location": (
            "location, emplacement, rayon, lagerort, standort, ort, regal, ubicacion, locatie, "
            "plaats, magazijn, schap, shelf, place, storage, bin, lagerplatz"
        ),
        "batchNumber": (
            "batch, batch number, lot, lot number, num lot, numero lot, charge, chargennummer, "
            "chargennr, chargenr, lote, batchnummer, partij, partijnummer, partijnr, lotnummer, "
            "charge nr"
        ),
        "supplier": (
            "supplier, vendor, fournisseur, fourn, lieferant, proveedor, leverancier, "
            "manufacturer, hersteller, laboratoire"
        ),
        "purchasePrice": (
            "purchase price, cost, cost price, buying price, prix achat, pa, einkaufspreis, ek, "
            "ekpreis, ek preis, precio compra, coste, costo, inkoopprijs, kostprijs, unit cost"
        ),
    },
    "appointmentTypes": {
        "name": f"{_NAME}, type name",
        "durationMinutes": (
            "duration, duration minutes, minutes, length, duree, duree min, dauer, dauer min, "
            "minuten, duracion, duur, tijdsduur, mins"
        ),
        "color": _COLOR,
    },
    "vets": {
        "name": (
            f"{_NAME}, full name, nachname, last name, surname, anzeigename, display name, "
            "apellido, achternaam, lname, lastname, nombre completo"
        )
    },
}
WORDS = {
    resource: {name: phrases(text) for name, text in fields.items()}
    for resource, fields in FIELDS.items()
}

# How a column that refers to a resource may be called, beside its `id`.
REFERS = {
    "clients": phrases(f"{_CLIENT}, pers, person, payer, bill to, contact, party"),
    "patients": phrases(_ANIMAL),
    "appointments": phrases(_VISIT),
    "appointmentTypes": phrases(
        "type, typ, terminart, appointment type, rdv type, type rdv, termintyp, afspraaktype, "
        "afspraaksoort, soort, tipo, tipo cita, service, reason, prestation, leistung"
    ),
    "vets": phrases(f"{_VET}, assigned, assigned to"),
    "invoices": phrases(_INVOICE),
    "stock": phrases(_STOCK),
}
ID = _words(
    "id, nr, no, num, number, nummer, code, ref, key, fk, uid, uuid, guid, pk, cd, lnr, lfd, sid"
)

DELETED = phrases(
    "deleted, is deleted, del, removed, supprime, suppr, efface, geloescht, geloscht, loesch, "
    "loeschkz, entfernt, borrado, eliminado, verwijderd, gewist, hidden, hide, archived, "
    "inactive, inaktiv, inactif, inactief, gearchiveerd, vervallen, deleted at, void, cancelled, "
    "storniert"
)
ACTIVE = phrases(
    "active, is active, actif, aktiv, activo, actief, enabled, valid, en activite, in dienst, "
    "werkzaam"
)
DEATH = phrases(
    "death, deceased, died, death date, dod, deces, mort, todesdatum, tod, verstorben, gestorben, "
    "todestag, fallecimiento, muerte, overleden, overlijden, sterfdatum, exitus, deceased at, "
    "date of death"
)
KIND = phrases(
    "type, kind, genre, typ, art, tipo, soort, role, category, class, entity type, party type, "
    "genre pers, rolle, rol, kennzeichen, kz"
)
VALUE = phrases(
    "value, val, valeur, wert, valor, waarde, content, contenu, inhalt, data, number, nummer, "
    "numero, text, contact, inhoud"
)
ATTRIBUTE = phrases(
    "field, champ, feld, campo, veld, attribute, attribut, attribuut, property, key, name, "
    "eigenschaft, merkmal, kenmerk, type, typ, code, atributo, param, art, soort, kind, tipo"
)
PREFERRED = phrases(
    "preferred, prefere, prefer, default, main, primary, principal, haupt, standard, bevorzugt, "
    "voorkeur, hoofd"
)
TABLE_NAME = phrases(
    "table, table name, nom table, tabelle, tabel, tabla, entity, entity type, object, "
    "object type, objekt, owner type, bereich"
)
ENTITY = phrases(
    "entity, entity id, record, record id, fiche, id fiche, objekt, objekt id, object id, "
    "datensatz, row id, parent, owner id, datensatz id, satz, registro, kaart, item id"
)
WEEKDAY = phrases(
    "weekday, day, day of week, dow, jour, jour semaine, wochentag, tag, dia, dia semana, dag, "
    "weekdag, dag van de week, week day"
)
DAY = phrases("date, day, jour, datum, tag, fecha, dag, on")
STARTS = phrases(
    _FROM + ", start time, time from, starts at, heure debut, uhrzeit, zeit, hora inicio, tijd"
)
ENDS = phrases(_TO + ", end time, time to, ends at, heure fin, hora fin")
TIME_OF_DAY = phrases(
    "time, heure, uhrzeit, zeit, hora, tijd, start time, hour, beginn, begin, begintijd, "
    "starttijd, tijdstip, start, zeit von, starttime"
)
MINUTES = phrases(
    "duration, minutes, length, duree, duree min, dauer, dauer min, minuten, duracion, duur, "
    "tijdsduur, mins, duration minutes"
)
REFERENCE = phrases(
    "external reference, external ref, ext ref, ref ext, reference externe, external id, extern, "
    "externe nummer, external, foreign id, import id, booking reference, web reference, "
    "referenz extern, ext id, online ref"
)
FIRST_NAME = phrases(FIELDS["clients"]["firstName"])
LAST_NAME = phrases(
    "last name, lname, surname, family name, nom, nachname, familienname, achternaam, apellido, "
    "apellidos, name, naam"
)
NAME_PREFIX = phrases("tussenvoegsel, tussenvoegsels, voorvoegsel, tussenv, tv, name prefix")
COMPANY = phrases(
    "company, company name, raison sociale, raison soc, firma, firmenname, empresa, razon social, "
    "bedrijf, bedrijfsnaam, organisation, organization"
)
TITLE = phrases("title, civilite, titre, anrede, titel, tratamiento, aanhef, salutation")
ADDRESS_PARTS = tuple(
    map(
        phrases,
        (
            FIELDS["clients"]["address"]
            + ", address 1, adresse 1, line 1, house, hausnummer, huisnummer, huisnr, "
            "address line 1",
            "postcode, post code, zip, zip code, code postal, cp, plz, postleitzahl, "
            "codigo postal, postal code",
            "city, town, ville, ort, stadt, ciudad, poblacion, plaats, woonplaats, gemeente, "
            "localite",
        ),
    )
)
LABEL = phrases(_NAME + ", text, species, breed, wert, value, short name")
SUPPLIERS = phrases(
    "supplier, vendor, fournisseur, fourn, lieferant, proveedor, leverancier, manufacturer, "
    "hersteller"
)

# What codes and labels of a status may mean: words, and what they are shortened to.
CODES = {
    "appointments.status": {
        "SCHEDULED": (
            "scheduled, planned, booked, planifie, prevu, geplant, gebucht, reserviert, "
            "programada, pendiente, gepland, ingepland, geboekt, open, offen, new, s, p, g"
        ),
        "CONFIRMED": "confirmed, confirme, bestaetigt, bestatigt, confirmada, bevestigd, c, conf",
        "ARRIVED": (
            "arrived, checked in, waiting, arrive, recu, salle attente, angekommen, wartet, "
            "eingetroffen, warteraum, llegado, en espera, aanwezig, gearriveerd, wachtkamer, r, w"
        ),
        "IN_PROGRESS": (
            "in progress, in room, started, en cours, in behandlung, laufend, en curso, bezig, "
            "in behandeling, e, i, l"
        ),
        "COMPLETED": (
            "completed, done, finished, termine, fini, honore, erledigt, abgeschlossen, fertig, "
            "completada, terminada, realizada, afgerond, afgehandeld, voltooid, klaar, t, f, d, "
            "complete, closed, checked out"
        ),
        "CANCELLED": (
            "cancelled, canceled, annule, abgesagt, storniert, cancelada, anulada, geannuleerd, "
            "afgezegd, vervallen, a, x, cncl, deleted"
        ),
        "NO_SHOW": (
            "no show, missed, absent, non venu, pas venu, manque, nicht erschienen, "
            "no presentado, niet verschenen, niet gekomen, n, ns, noshow"
        ),
    },
    "patients.status": {
        "ACTIVE": (
            "active, actif, aktiv, activo, actief, alive, vivant, lebt, vivo, levend, o, y, j, a, "
            "1, true, s, yes"
        ),
        "DECEASED": (
            "deceased, dead, died, decede, mort, tot, verstorben, gestorben, fallecido, muerto, "
            "overleden, dood, d, v"
        ),
        "INACTIVE": (
            "inactive, inactif, inaktiv, inactivo, inactief, verhuisd, n, 0, false, i, no, moved, "
            "sold, archived"
        ),
    },
    "patients.sex": {
        "MALE": (
            "male, m, male neutered, mn, mc, neutered male, buck, stallion, ruede, kater, hengst, "
            "maennlich, mannlich, macho, mannelijk, reu, ruin, man, mk, 1, wallach"
        ),
        "FEMALE": (
            "female, f, fs, female spayed, spayed female, femelle, huendin, weiblich, w, wk, "
            "katze, stute, hembra, h, vrouwelijk, v, teef, poes, merrie, vrouw, 2"
        ),
        "UNKNOWN": (
            "unknown, u, i, inconnu, unbekannt, desconocido, onbekend, indetermine, x, 0, 3, o, ?"
        ),
    },
    "consultations.status": {
        "IN_PROGRESS": (
            "in progress, open, draft, en cours, brouillon, offen, in arbeit, laufend, en curso, "
            "abierta, bezig, concept, e, o, d, 0, false, n, i"
        ),
        "VALIDATED": (
            "validated, valid, closed, signed, final, done, completed, valide, cloture, "
            "abgeschlossen, freigegeben, fertig, validada, cerrada, gevalideerd, afgesloten, v, "
            "c, f, 1, true, y, j, a, s"
        ),
    },
    "consultations.importance": {
        "ROUTINE": "routine, normal, low, standard, rutina, laag, gering, niedrig, 1, r, n, l, 0",
        "IMPORTANT": "important, medium, wichtig, importante, belangrijk, erhoeht, middel, 2, i, m",
        "CRITICAL": (
            "critical, high, urgent, critique, kritisch, critica, kritiek, hoch, hoog, 3, c, h, "
            "k, u"
        ),
    },
    "invoices.status": {
        "DRAFT": (
            "draft, brouillon, entwurf, borrador, concept, proforma, b, d, new, open draft, entw"
        ),
        "ISSUED": (
            "issued, sent, open, emise, envoyee, gestellt, versandt, offen, emitida, enviada, "
            "verzonden, verstuurd, openstaand, e, i, o, g, posted, unpaid, fakturiert"
        ),
        "PARTIALLY_PAID": (
            "partially paid, partly paid, partial, part paid, partiellement reglee, partielle, "
            "teilbezahlt, teilweise bezahlt, parcial, deels betaald, gedeeltelijk betaald, p, t, "
            "tb, pp"
        ),
        "PAID": (
            "paid, settled, soldee, reglee, payee, bezahlt, beglichen, pagada, betaald, s, z, "
            "bez, closed"
        ),
        "CANCELLED": (
            "cancelled, canceled, void, annulee, storniert, storno, anulada, cancelada, "
            "geannuleerd, vervallen, a, x, c, v, st"
        ),
    },
}
CODE_WORDS = {
    field: {value: phrases(text) for value, text in table.items()} for field, table in CODES.items()
}
# What the kinds of party are called, and shortened to.
PARTIES = {
    "clients": phrases(_CLIENT + ", c, k, cl, ku, eig"),
    "vets": phrases(_VET + ", v, ta, da, doc, dr, dierenarts, t, a"),
    "patients": phrases(_ANIMAL + ", p, a"),
    "suppliers": phrases(
        "supplier, fournisseur, vendor, lieferant, proveedor, leverancier, f, l, s"
    ),
    "owners": phrases(
        "owner, proprietaire, besitzer, halter, eigenaar, propietario, p, o, b, h, e"
    ),
}
PHONES = phrases(
    "phone, telephone, tel, mobile, portable, handy, telefon, telefono, movil, telefoon, gsm, t, "
    "p, home, m, mob, cell"
)
NOT_PHONES = phrases("fax, x, telefax, telecopie")
YES = ("O", "Y", "J", "S", "T", "YES", "OUI", "JA", "SI", "TRUE", "V", "-1")
NO = ("N", "F", "NO", "NON", "NEIN", "NEE", "FALSE")
