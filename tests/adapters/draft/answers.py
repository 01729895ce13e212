"""What a person who knows the three databases would have written: the column behind each field."""

SAMPLE = """
appointments clientId=PROPRIETAIRES.ID_PERS patientId=RDV.ID_ANIMAL appointmentTypeId=RDV.ID_TYPE
  vetId=RDV.ID_VETO status=RDV.STATUT displayStatus=RDV.STATUT scheduledAt=RDV.D_DEBUT
  endTime=RDV.D_FIN isUrgent=RDV.URGENT createdAt=RDV.DT_SAISIE reason=RDV.MOTIF
clients firstName=PERSONNES.PRENOM lastName=PERSONNES.NOM phone=COORDONNEES.VALEUR:T
  email=COORDONNEES.VALEUR:M createdAt=PERSONNES.DT_CREATION updatedAt=PERSONNES.DT_MODIF
  address=PERSONNES.ADRESSE1
patients clientId=PROPRIETAIRES.ID_PERS name=ANIMAUX.NOM species=ESPECES.LIBELLE
  status=ANIMAUX.ACTIF breed=ANIMAUX.RACE sex=ANIMAUX.SEXE neutered=ANIMAUX.STERILISE
  birthDate=ANIMAUX.DT_NAISSANCE color=CHAMPS_SUPPL.VALEUR:ROBE
  weightKg=CHAMPS_SUPPL.VALEUR:POIDS createdAt=ANIMAUX.DT_CREATION updatedAt=ANIMAUX.DT_MODIF
  microchip=CHAMPS_SUPPL.VALEUR:PUCE alerts=CHAMPS_SUPPL.VALEUR:ALERTES
consultations appointmentId=CONSULTATIONS.ID_RDV patientId=CONSULTATIONS.ID_ANIMAL
  vetId=CONSULTATIONS.ID_VETO status=CONSULTATIONS.ETAT importance=CONSULTATIONS.IMPORTANCE
  startedAt=CONSULTATIONS.D_DEBUT validatedAt=CONSULTATIONS.D_VALID
  createdAt=CONSULTATIONS.DT_CREATION ownerSummary=CONSULTATIONS.RESUME
  ownerDiagnosis=CONSULTATIONS.DIAGNOSTIC ownerInstructions=CONSULTATIONS.CONSIGNES
invoices number=FACTURES.NUMERO clientId=FACTURES.ID_PERS status=FACTURES.ETAT
  issuedAt=FACTURES.D_EMISSION dueAt=FACTURES.D_ECHEANCE currency=FACTURES.DEVISE
  subtotal=FACTURES.TOTAL_HT taxTotal=FACTURES.TOTAL_TVA total=FACTURES.TOTAL_TTC
  amountPaid=REGLEMENTS.MONTANT createdAt=FACTURES.DT_CREATION
  lines.unitPrice=LIGNES_FACT.PU_HT lines.quantity=LIGNES_FACT.QTE
  lines.taxRate=LIGNES_FACT.TAUX_TVA lines.total=LIGNES_FACT.TOTAL_HT
  lines.description=LIGNES_FACT.LIBELLE lines.patientId=LIGNES_FACT.LIEN
  payments.paidAt=REGLEMENTS.D_REGL payments.amount=REGLEMENTS.MONTANT
  payments.method=REGLEMENTS.MODE
stock name=ARTICLES.LIBELLE category=ARTICLES.FAMILLE reference=ARTICLES.REFERENCE
  unit=ARTICLES.UNITE quantity=LOTS.QTE reorderThreshold=CHAMPS_SUPPL.VALEUR:SEUIL
  expiresAt=LOTS.D_PEREMPTION updatedAt=ARTICLES.DT_MODIF salePrice=ARTICLES.PRIX_VENTE
  location=ARTICLES.EMPLACEMENT batchNumber=LOTS.NUM_LOT supplier=ARTICLES.ID_FOURN
  purchasePrice=ARTICLES.PRIX_ACHAT
appointmentTypes name=TYPES_RDV.LIBELLE durationMinutes=TYPES_RDV.DUREE_MIN
  color=TYPES_RDV.COULEUR
vets name=PERSONNES.NOM
"""

ENGLISH = """
appointments clientId=Pets.ownerId patientId=appointments.pet_id
  appointmentTypeId=appointments.type_id vetId=appointments.staff_no
  status=appointment_status.name displayStatus=appointment_status.name
  scheduledAt=appointments.starts_at endTime=appointments.ends_at isUrgent=appointments.urgent
  createdAt=appointments.created_at reason=appointments.complaint
clients firstName=owners.given_name lastName=owners.surname phone=owners.mobile
  email=owners.email_address createdAt=owners.created_on updatedAt=owners.last_modified
  address=owners.street
patients clientId=Pets.ownerId name=Pets.petName species=species.label status=Pets.isActive
  breed=breeds.label sex=Pets.gender neutered=Pets.isNeutered birthDate=Pets.dob
  color=Pets.coatColour weightKg=Pets.weight createdAt=Pets.createdAt updatedAt=Pets.updatedAt
  microchip=Pets.chipNumber alerts=Pets.warnings
consultations appointmentId=visits.appointment_id patientId=visits.pet_id vetId=visits.vet_id
  status=visits.state importance=visits.severity startedAt=visits.visit_date
  validatedAt=visits.signed_at createdAt=visits.created ownerSummary=visits.client_summary
  ownerDiagnosis=visits.diagnosis ownerInstructions=visits.aftercare
invoices number=invoices.invoice_no clientId=invoices.owner_id status=invoices.status
  issuedAt=invoices.invoice_date dueAt=invoices.due_date currency=invoices.currency
  subtotal=invoices.net_amount taxTotal=invoices.vat_amount total=invoices.gross
  amountPaid=invoices.paid createdAt=invoices.created_at
  lines.unitPrice=invoice_items.unit_price lines.quantity=invoice_items.qty
  lines.taxRate=invoice_items.vat_rate lines.total=invoice_items.line_total
  lines.description=invoice_items.description lines.patientId=invoice_items.pet_id
  payments.paidAt=payments.received_at payments.amount=payments.amount
  payments.method=payments.method
stock name=products.product_name category=products.category reference=products.sku
  unit=products.unit quantity=products.qty_on_hand reorderThreshold=products.reorder_level
  expiresAt=products.expiry_date updatedAt=products.updated_at salePrice=products.retail_price
  location=products.shelf batchNumber=products.batch_no supplier=suppliers.name
  purchasePrice=products.cost_price
appointmentTypes name=appointment_types.name durationMinutes=appointment_types.length_minutes
  color=appointment_types.colour
vets name=staff.full_name
"""

GERMAN = """
appointments clientId=tbl_tiere.AdrNr patientId=tbl_termine.TierNr
  appointmentTypeId=tbl_termine.ArtNr vetId=tbl_termine.BehandlerNr status=tbl_termine.Status
  displayStatus=tbl_termine.Status scheduledAt=tbl_termine.Datum endTime=tbl_termine.DauerMin
  isUrgent=tbl_termine.Notfall createdAt=tbl_termine.erfasst reason=tbl_termine.Grund
clients firstName=tbl_adressen.Vorname lastName=tbl_adressen.Nachname phone=tbl_adressen.Telefon
  email=tbl_adressen.EMail createdAt=tbl_adressen.angelegt updatedAt=tbl_adressen.geaendert
  address=tbl_adressen.Strasse
patients clientId=tbl_tiere.AdrNr name=tbl_tiere.Tiername species=tbl_tiere.Tierart
  status=tbl_tiere.verstorben breed=tbl_tiere.Rasse sex=tbl_tiere.Geschlecht
  neutered=tbl_tiere.kastriert birthDate=tbl_tiere.Geburtsdatum
  color=tbl_tier_merkmale.Wert:Fellfarbe weightKg=tbl_tier_merkmale.Wert:Gewicht
  createdAt=tbl_tiere.angelegt updatedAt=tbl_tiere.geaendert
  microchip=tbl_tier_merkmale.Wert:Chipnummer alerts=tbl_tier_merkmale.Wert:Warnhinweis
consultations appointmentId=tbl_behandlungen.TerminNr patientId=tbl_behandlungen.TierNr
  vetId=tbl_behandlungen.BehandlerNr status=tbl_behandlungen.Status
  importance=tbl_behandlungen.Prioritaet startedAt=tbl_behandlungen.Beginn
  validatedAt=tbl_behandlungen.freigegeben createdAt=tbl_behandlungen.erfasst
  ownerSummary=tbl_behandlungen.Zusammenfassung ownerDiagnosis=tbl_behandlungen.Diagnose
  ownerInstructions=tbl_behandlungen.Empfehlung
invoices number=tbl_rechnungen.Rechnungsnummer clientId=tbl_rechnungen.AdrNr
  status=tbl_rechnungen.Status issuedAt=tbl_rechnungen.Rechnungsdatum dueAt=tbl_rechnungen.faellig
  currency=tbl_rechnungen.Waehrung subtotal=tbl_rechnungen.Netto taxTotal=tbl_rechnungen.MwSt
  total=tbl_rechnungen.Brutto amountPaid=tbl_zahlungen.Betrag createdAt=tbl_rechnungen.erfasst
  lines.unitPrice=tbl_rechnungspositionen.Einzelpreis
  lines.quantity=tbl_rechnungspositionen.Menge lines.taxRate=tbl_rechnungspositionen.MwStSatz
  lines.total=tbl_rechnungspositionen.Gesamtpreis
  lines.description=tbl_rechnungspositionen.Bezeichnung
  lines.patientId=tbl_rechnungspositionen.TierNr payments.paidAt=tbl_zahlungen.Zahlungsdatum
  payments.amount=tbl_zahlungen.Betrag payments.method=tbl_zahlungen.Zahlungsart
stock name=tbl_artikel.Bezeichnung category=tbl_artikel.Warengruppe
  reference=tbl_artikel.ArtikelNr unit=tbl_artikel.Einheit quantity=tbl_artikel.Bestand
  reorderThreshold=tbl_artikel.Mindestbestand expiresAt=tbl_artikel.Verfallsdatum
  updatedAt=tbl_artikel.geaendert salePrice=tbl_artikel.VKPreis location=tbl_artikel.Lagerort
  batchNumber=tbl_artikel.ChargenNr supplier=tbl_artikel.LieferantNr
  purchasePrice=tbl_artikel.EKPreis
appointmentTypes name=tbl_terminarten.Bezeichnung durationMinutes=tbl_terminarten.Dauer
  color=tbl_terminarten.Farbe
vets name=tbl_adressen.Nachname
"""

DUTCH = """
appointments clientId=afspraak.klantnr patientId=afspraak.diernr
  appointmentTypeId=afspraak.soortnr vetId=afspraak.medewnr status=afspraak.toestand
  displayStatus=afspraak.toestand scheduledAt=afspraak.aanvang endTime=afspraak.eindtijd
  isUrgent=afspraak.spoed createdAt=afspraak.aangemaakt reason=afspraak.klacht
clients firstName=klant.voornaam lastName=klant.achternaam phone=klant.mobiel
  email=klant.mailadres createdAt=klant.aangemaakt_op updatedAt=klant.laatst_gewijzigd
  address=klant.straat
patients clientId=huisdier.klantnr name=huisdier.roepnaam species=huisdier.diersoort
  breed=huisdier.ras sex=huisdier.geslacht neutered=huisdier.gecastreerd
  status=huisdier.overleden_op birthDate=huisdier.geboortedatum color=huisdier.kleur
  weightKg=huisdier.gewicht createdAt=huisdier.ingeschreven updatedAt=huisdier.gewijzigd
  microchip=huisdier.chipnr alerts=huisdier.bijzonderheden
consultations appointmentId=consult.afspraaknr patientId=consult.diernr vetId=consult.medewnr
  status=consult.toestand startedAt=consult.consultdatum ownerSummary=consult.samenvatting
  ownerDiagnosis=consult.diagnose ownerInstructions=consult.nazorg
invoices number=rekening.nummer clientId=rekening.klantnr status=rekening.toestand
  issuedAt=rekening.rekeningdatum dueAt=rekening.vervaldatum subtotal=rekening.totaal_excl
  taxTotal=rekening.btw_bedrag total=rekening.totaal amountPaid=betaling.bedrag
  lines.unitPrice=rekeningregel.stuksprijs lines.quantity=rekeningregel.aantal
  lines.taxRate=rekeningregel.btw_perc lines.total=rekeningregel.regelbedrag
  lines.description=rekeningregel.omschrijving lines.patientId=rekeningregel.diernr
  payments.paidAt=betaling.betaald_op payments.amount=betaling.bedrag
  payments.method=betaling.betaalwijze
stock name=artikel.naam category=artikel.artikelgroep reference=artikel.artikelcode
  unit=artikel.eenheid quantity=artikel.voorraad reorderThreshold=artikel.minimumvoorraad
  expiresAt=artikel.houdbaar_tot updatedAt=artikel.gewijzigd salePrice=artikel.verkoopprijs
  location=artikel.locatie batchNumber=artikel.partijnr supplier=artikel.leverancier
  purchasePrice=artikel.inkoopprijs
appointmentTypes name=afspraaksoort.omschrijving durationMinutes=afspraaksoort.tijdsduur
  color=afspraaksoort.kleur
vets name=medew.achtern
"""


def answers(text: str) -> dict[str, str]:
    """`resource.field` -> `TABLE.COLUMN`, of a text as above."""
    found: dict[str, str] = {}
    resource = ""
    for word in text.split():
        field, equals, column = word.partition("=")
        if equals:
            found[f"{resource}.{field}"] = column
        else:
            resource = word
    return found
