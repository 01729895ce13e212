"""Finds the town in an address of one text; in doubt there is none, since a street is no town.

It reads addresses whose last part, but for the country, is the town's: behind a postal code
(75011 Paris, 1012 AB Amsterdam), or before one (London SW1A 1AA; Springfield, IL 62701). The
number of a house looks like a postal code, and the name of a street like that of a town: so an
earlier part must be the street, and what is found must not look like one.
"""

import re
import unicodedata
from collections.abc import Sequence


def _listed(words: str, between: str | None = None) -> frozenset[str]:
    return frozenset(words.split(between))


# Characters of an address; in what is longer, other things may stand too.
LONGEST = 300

_ends = re.compile(r"[,;\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_words = re.compile(r"[^\W_]+").findall
_town = re.compile(
    r"[^\W\d_]+\.?(?:[ '\u2019/-]{1,2}[^\W\d_]+\.?){0,5}(?: \([A-Z]{2}\))?"
).fullmatch
_code_before = re.compile(r"(?:[A-Z]{1,2}-)?[0-9]{4,6}(?: [A-Z]{2})? {1,3}([^\d]+)").fullmatch
_british = "[A-Z]{1,2}[0-9][A-Z0-9]? [0-9][A-Z]{2}"
_code_behind = re.compile(rf"([^\d]+) {_british}").fullmatch
_code_alone = re.compile(rf"[A-Z]{{2}} {{1,3}}[0-9]{{5}}(?:-[0-9]{{4}})?|{_british}").fullmatch

COUNTRIES = _listed(
    "france|deutschland|germany|allemagne|nederland|netherlands|the netherlands|pays-bas|belgique"
    "|belgië|belgien|belgium|suisse|schweiz|svizzera|switzerland|österreich|austria|luxembourg"
    "|luxemburg|uk|united kingdom|great britain|england|scotland|wales|ireland|éire|usa|u.s.a."
    "|united states|united states of america|españa|spain|espagne|italia|italy|italie|danmark"
    "|denmark|danemark",
    "|",
)
# Words that stand in the names of streets, wherever they stand there.
STREETS = _listed(
    "rue avenue boulevard bd blvd chemin route rte allée allee allées impasse place quai cours"
    " passage sentier ruelle venelle voie faubourg promenade esplanade traverse montée"
    " street road lane drive way crescent close terrace mews parade alley highway parkway turnpike"
    " broadway piccadilly strand holborn embarcadero bowery whitehall strip estate estates"
    " calle avenida avda plaza paseo camino carretera ctra ronda rambla travesía glorieta"
    " via viale piazza piazzale corso vicolo largo strada lungomare contrada"
)
# Those that may begin the name of a town: St Albans, Court-Saint-Étienne, Square-des-Bois.
LAST_WORDS = _listed("st rd ave av ln dr ct pl court square row walk grove gardens")
_ending = re.compile(
    r".*(?:stra(?:ss|ß)e|str|weg|platz|gasse|allee|ufer|damm|ring|graben|pfad|chaussee"
    r"|straat|laan|plein|gracht|kade|singel|dijk|dreef)"
).fullmatch
# Words beside the number of a part of a building, or of what is no street.
UNITS = _listed(
    "flat apt apartment unit suite ste floor fl room rm penthouse building bldg block level lot"
    " tower wing house box po bp cs postbus postfach apartado casella appartement appt app bât bat"
    " bâtiment batiment esc escalier porte étage etage résidence residence logement bte boîte"
    " boite bus haus hinterhaus vorderhaus wohnung whg stock stiege top aufgang piso planta"
    " puerta portal bloque scala piano interno int palazzina co"
)
# Words before the name of a person.
PERSONS = _listed("chez mme mlle mr mrs ms madame monsieur herr frau dr bei sig señor")


def town_of(address: str) -> str | None:
    """The town, as it is written there; None in doubt."""
    if len(address) > LONGEST:
        return None
    written = _ends.split(unicodedata.normalize("NFC", address))
    parts = [part for each in written if (part := each.strip())]
    if parts and parts[-1].casefold() in COUNTRIES:
        parts.pop()
    if len(parts) < 2:
        return None
    *earlier, last = parts
    found = _code_before(last)
    if found:
        return _sure(found[1], any(map(_is_street, earlier)) or any(map(_is_numbered, earlier)))
    found = _code_behind(last)
    if found:
        return _sure(found[1], any(map(_is_street, earlier)))
    if _code_alone(last):
        return _sure(earlier[-1], any(map(_is_street, earlier[:-1])))
    return None


def _sure(town: str, has_street: bool) -> str | None:
    town = town.strip()
    words = _spelt(town.partition(" (")[0])
    is_more = _is_street(town) or not (UNITS | PERSONS).isdisjoint(words)
    return town if has_street and _town(town) and not is_more else None


def _is_street(part: str) -> bool:
    words = _spelt(part)
    letters = [each for each in words if not each.isdecimal()]
    return (
        not STREETS.isdisjoint(words)
        or (bool(letters) and letters[-1] in LAST_WORDS)
        or any(map(_ending, words))
    )


def _is_numbered(part: str) -> bool:
    """Whether it has the number of a house, and not of a flat."""
    words = _spelt(part)
    named = any(len(each) > 1 and each.isalpha() for each in words)
    return named and any(each[0].isdecimal() for each in words) and UNITS.isdisjoint(words)


def _spelt(part: str) -> Sequence[str]:
    return [str(each).lower() for each in _words(part)]
