"""Of an address only the town is found, and in doubt nothing: a street or a name is never shown."""

import time

import pytest

from gateway.policy.towns import LONGEST, town_of

SHOWN = {
    "12 rue des Lilas, 75011 Paris": "Paris",
    "12 bis, rue des Lilas, 75011 Paris": "Paris",
    "12 RUE DES LILAS\r\n75011 PARIS\r\nFRANCE": "PARIS",
    "Résidence Les Lilas, bât B, 3 allée du Parc, 69100 Villeurbanne": "Villeurbanne",
    "3 place de l'Église, 24220 Saint-Cyprien": "Saint-Cyprien",
    "5 chemin des Vignes; 06560 Sophia Antipolis": "Sophia Antipolis",
    "8 rue Haute, F-67000 Strasbourg, France": "Strasbourg",
    "8 rue du Port, 62200 Boulogne-sur-Mer": "Boulogne-sur-Mer",
    "2 cours Mirabeau, 13100 L'Isle-d'Abeau": "L'Isle-d'Abeau",
    "Chausseestr. 5, D-10115 Berlin": "Berlin",
    "Am Markt 1, 60311 Frankfurt am Main, Deutschland": "Frankfurt am Main",
    "Lindenweg 12a\n80331 München": "München",
    "Lindenweg 12a, 80331 Mu\u0308nchen": "München",
    "Rathausplatz 1, 1010 Wien": "Wien",
    "Damrak 1, 1012 LG Amsterdam": "Amsterdam",
    "Lange Voorhout 7, 2514 EA 's-Gravenhage": None,
    "Keizersgracht 174-2, 1016 DW Amsterdam, Nederland": "Amsterdam",
    "Kerkstraat 5 bus 3, 2000 Antwerpen": "Antwerpen",
    "Rue Haute 12, B-1000 Bruxelles": "Bruxelles",
    "Bahnhofstrasse 1, 8001 Zürich": "Zürich",
    "Place de la Gare, CH-1003 Lausanne, Suisse": "Lausanne",
    "Dorfstrasse 3, 9000 St. Gallen": "St. Gallen",
    "Dufourstrasse 3, 2502 Biel/Bienne": "Biel/Bienne",
    "10 Downing Street, London SW1A 2AA": "London",
    "10 Downing Street, London, SW1A 2AA, United Kingdom": "London",
    "Rose Cottage, Church Lane, Oxford, OX1 2AB": "Oxford",
    "4 Holywell Hill, Abbey Road, St Albans AL1 1BZ": "St Albans",
    "12 Main St, Springfield, IL 62701": "Springfield",
    "Apt 5, 12 Main St, Springfield, IL 62701-1234, USA": "Springfield",
    "1600 Pennsylvania Ave, Washington, DC 20500": "Washington",
    "Calle Mayor 5, 3º B, 28013 Madrid": "Madrid",
    "Avda. de la Constitución 3, 41001 Sevilla, España": "Sevilla",
    "Via Roma 12, 00184 Roma (RM)": "Roma (RM)",
    "Corso Vittorio Emanuele 3, 20122 Milano": "Milano",
}
HIDDEN = [
    "",
    "Paris",
    "75011 Paris",
    "Ferme du Bois",
    "12 Main Street, Galway, H91 E2K3",
    "12 Main Street, Dublin 2",
    "12 Main Street, Ballsbridge, Co. Dublin",
    # the number of a house that looks like a postal code
    "1234 Main Street",
    "Suite 5, 1600 Broadway, New York, NY, 10018",
    "Suite 5, 1600 Pennsylvania, Washington",
    "Flat 2, 1200 High Holborn, London",
    "Dr Smith, 1250 Hauptstrasse, Zürich",
    "c/o Meier, 1234 Lindenweg",
    "Apt 3, 1250 Calle Mayor, Madrid",
    "Apt 9, 4500 El Camino Real",
    "Appt 3, 1234 Grand Rue",
    "Résidence 4, 1250 Grand Large",
    "2nd floor, 1250 Castellana",
    "PO Box 5, 1250 Castellana",
    # a street where the town should be
    "Rose Cottage, Church Lane, OX1 2AB",
    "Rose Cottage, Church Lane OX1 2AB",
    "Flat 2, Piccadilly, W1J 0BH",
    "Flat 2, Cornmarket, OX1 3EY",
    "5 Rose Cottages, Cornmarket, OX1 3EY",
    "Mill House, Bath Road SN8 1AA",
    "12 Oak St, IL 62701",
    "12 Oak St, Oak Ridge Estates, IL 62701",
    "Calle 5, 28013 Paseo del Prado",
    "Grote Markt 1, 2000 Kerkstraat",
    "Haus 3 am See 1, 8001 Hintere Bahnhofstraße",
    # more than the town
    "12 rue X, 75011 Paris rue de la Paix",
    "12 rue X, 75011 Paris chez Mme Dupont",
    "12 rue X, 75011 Paris (code 1234)",
    "12 rue X, 75011 Paris (derrière la poste)",
    "Bahnhofstrasse 1, 8001 Zürich (Hintereingang Bahnhofstrasse)",
    "Bahnhofstrasse 1, 8001 Zürich Hinterhaus",
    "12 rue X, 75011 Paris\u200b",
    # the town is not the last part
    "75011 Paris, 12 rue des Lilas",
    "Grote Markt 1, 2000 Antwerpen, Kerkstraat 5",
    "12 rue des Lilas, 75011 Paris, chez Mme Dupont",
]


@pytest.mark.parametrize(("address", "town"), SHOWN.items())
def test_the_town_is_found(address: str, town: str | None) -> None:
    assert town_of(address) == town


@pytest.mark.parametrize("address", HIDDEN)
def test_in_doubt_nothing_is_found(address: str) -> None:
    assert town_of(address) is None


@pytest.mark.parametrize("size", [LONGEST, 100_000])
@pytest.mark.parametrize(
    "text", ["x, a{} b1", "1 rue, {}1", "1 rue, 12345{}1", "1 rue, 75011 a{}1", "{}"]
)
@pytest.mark.parametrize("filling", [" ", "A", "a-", ",", "a ", "st ", "rue\n", "1 ", "'"])
def test_a_long_text_costs_no_time(text: str, filling: str, size: int) -> None:
    address = text.format(filling * (size // len(filling)))[:size]
    began = time.process_time()
    town_of(address)
    assert time.process_time() - began < 0.1
